#include "rotrnn/network/fused/state_norms.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <stdexcept>

#include "rotrnn/base/threads.h"

namespace rotrnn {

void diagonal_norms(const float* z, size_t stride, size_t rows, const LayerStates& states,
                    int threads, std::vector<float>& out) {
  const auto G = static_cast<size_t>(states.groups), S = static_cast<size_t>(states.count);
  const size_t each = S / G;
  out.resize(rows * G);
  kernels::parallel_for(threads, [&](int thread) {
    const auto part = static_cast<size_t>(thread), parts = static_cast<size_t>(threads);
    for (size_t t = rows * part / parts; t < rows * (part + 1) / parts; ++t) {
      const float *re = z + t * stride, *im = re + S;
      for (size_t g = 0; g < G; ++g) {
        double sum = 0;
        for (size_t i = g * each; i < (g + 1) * each; ++i) {
          sum += static_cast<double>(re[i]) * static_cast<double>(re[i]) +
                 static_cast<double>(im[i]) * static_cast<double>(im[i]);
        }
        out[t * G + g] = static_cast<float>(states.scale * std::sqrt(sum));
      }
    }
  });
}

void channel_norms(const Channel<float>& layer, const kernels::PackedSequences& sequences,
                   const float* u, int threads, std::vector<float>& out) {
  if (layer.states == 0) {
    throw std::invalid_argument("norms: a convolution shows no states");
  }
  const auto D = static_cast<size_t>(layer.width), N = static_cast<size_t>(layer.states);
  out.assign(sequences.tokens(), 0.0f);
  std::atomic<size_t> next{0};
  kernels::parallel_for(threads, [&](int) {
    std::vector<float> re(N * D), im(N * D);
    for (size_t i; (i = next++) < sequences.count;) {
      std::fill(re.begin(), re.end(), 0.0f);
      std::fill(im.begin(), im.end(), 0.0f);
      for (size_t t = sequences.begin(i); t < sequences.end(i); ++t) {
        double sum = 0;
        for (size_t n = 0; n < N; ++n) {
          float square = 0;
          for (size_t d = 0; d < D; ++d) {
            const size_t k = n * D + d;
            const float a = re[k], b = im[k], x = layer.lambda_re[k], y = layer.lambda_im[k];
            re[k] = x * a - y * b + u[t * D + d];
            im[k] = x * b + y * a;
            square += re[k] * re[k] + im[k] * im[k];
          }
          sum += static_cast<double>(square);
        }
        out[t] = static_cast<float>(std::sqrt(sum));
      }
    }
  });
}

}  // namespace rotrnn
