#include "rotrnn/network/layer_maps.h"

#include <algorithm>
#include <atomic>

#include "rotrnn/base/threads.h"
#include "rotrnn/layers/layer_table.h"

namespace rotrnn {
namespace {

template <class F>
void for_layers(int threads, size_t count, const F& f) {
  std::atomic<size_t> next{0};
  kernels::parallel_for(std::min(threads, static_cast<int>(count)), [&](int) {
    for (size_t i; (i = next++) < count;) f(i);
  });
}

std::vector<int64_t> integers_of(const std::vector<LayerValues>& layers) {
  std::vector<int64_t> out;
  for (const LayerValues& layer : layers) {
    for (const auto& [name, values] : layer.integers) {
      out.insert(out.end(), values.begin(), values.end());
    }
  }
  return out;
}

}  // namespace

void LayerMaps::forward(const LayerOptions& options, const std::vector<LayerValues>& layers,
                        int64_t longest, int threads, bool reuse) {
  const LayerKind& kind = layer_kind(options.layer);
  const std::vector<int64_t> before = integers_of(layers);
  for (const LayerValues& layer : layers) {
    if (kind.prepare != nullptr) kind.prepare(options, layer, longest);
  }
  if (reuse && mapped_ && before == integers_of(layers)) return;
  exact_.resize(layers.size());
  rounded_.resize(layers.size());
  gradients_.resize(layers.size());
  kind.map({options, layers, threads}, exact_, trace_);
  for_layers(threads, layers.size(), [&](size_t i) { convert(exact_[i], rounded_[i]); });
  mapped_ = true;
}

void LayerMaps::backward(const LayerOptions& options, const std::vector<LayerValues>& layers,
                         int threads, const std::vector<Views<double>>& out,
                         const std::vector<Description<double>>* exact) {
  exact_gradients_.resize(layers.size());
  for_layers(threads, layers.size(), [&](size_t i) {
    if (exact == nullptr) convert(gradients_[i], exact_gradients_[i]);
    for (const auto& [name, values] : out[i]) std::fill(values.begin(), values.end(), 0.0);
  });
  layer_kind(options.layer)
      .map_backward({options, layers, threads}, trace_, exact ? *exact : exact_gradients_, out);
}

}  // namespace rotrnn
