// A recurrent layer by itself: a ragged batch in, gradients out.
#include <cstdio>

#include "rotrnn/network/single_layer.h"

int main() {
  rotrnn::LayerOptions options;
  options.width = 16, options.state = 32, options.rotrnn.heads = 8;
  rotrnn::SingleLayer layer(options, /*seed=*/0);
  const std::vector<int64_t> offsets{0, 1000, 1500};  // sequences of 1,000 and 500 steps
  const std::vector<float> u(1500 * 16, 1.0f);
  std::vector<float> y(u.size()), du(u.size());
  layer.forward({.offsets = offsets, .u = u.data(), .backward = true}, {.y = y.data()});
  rotrnn::FlatArray gradients(layer.layout());
  layer.backward({.y = y.data()}, gradients, {.u = du.data()});  // of Σ y²/2
  for (const auto& p : layer.layout().parameters) {
    std::printf("%-10s %5zu gradients, the first %g\n", p.name.c_str(), p.count,
                static_cast<double>(gradients.of(p)[0]));
  }
}
