#include "rotrnn/kernels/block/linear.h"

#include <algorithm>
#include <vector>

#include "rotrnn/base/threads.h"

namespace rotrnn::kernels {
namespace {

// Rows whose gradients are summed in float before they join the others in double; also the unit
// that threads take, so that the result does not depend on how many there are.
constexpr size_t kRows = 256;

// Calls body(first row, end row, number of the group) for every group of rows.
template <class Body>
void for_row_groups(size_t n, int threads, const Body& body) {
  const size_t groups = (n + kRows - 1) / kRows;
  parallel_for(threads, [&](int t) {
    for (size_t g = static_cast<size_t>(t); g < groups; g += static_cast<size_t>(threads)) {
      body(g * kRows, std::min(n, (g + 1) * kRows), g);
    }
  });
}

// [D, channels] as [channels, D], so that the inner loops run along D.
std::vector<float> transposed(const float* weight, size_t D, size_t channels) {
  std::vector<float> out(D * channels);
  for (size_t d = 0; d < D; ++d) {
    for (size_t c = 0; c < channels; ++c) out[c * D + d] = weight[d * channels + c];
  }
  return out;
}

}  // namespace

void linear_forward(const float* x, size_t n, size_t channels, const float* weight,
                    const float* bias, size_t D, float* out, int threads) {
  const std::vector<float> w = transposed(weight, D, channels);
  for_row_groups(n, threads, [&](size_t begin, size_t end, size_t) {
    for (size_t t = begin; t < end; ++t) {
      float* row = out + t * D;
      std::copy(bias, bias + D, row);
      for (size_t c = 0; c < channels; ++c) {
        const float value = x[t * channels + c];
        const float* wc = w.data() + c * D;
        for (size_t d = 0; d < D; ++d) row[d] += value * wc[d];
      }
    }
  });
}

void linear_backward(const float* x, size_t n, size_t channels, const float* weight, size_t D,
                     const float* dout, float* dweight, float* dbias, float* dx, int threads) {
  const size_t groups = (n + kRows - 1) / kRows, size = (channels + 1) * D;
  std::vector<float> partial(groups * size, 0.0f);  // per group: bias, then each channel
  for_row_groups(n, threads, [&](size_t begin, size_t end, size_t g) {
    float* sums = partial.data() + g * size;
    for (size_t t = begin; t < end; ++t) {
      const float* row = dout + t * D;
      for (size_t d = 0; d < D; ++d) sums[d] += row[d];
      for (size_t c = 0; c < channels; ++c) {
        const float value = x[t * channels + c];
        float* sum = sums + (c + 1) * D;
        for (size_t d = 0; d < D; ++d) sum[d] += value * row[d];
        if (dx == nullptr) continue;
        float dot = 0;
        for (size_t d = 0; d < D; ++d) dot += row[d] * weight[d * channels + c];
        dx[t * channels + c] = dot;
      }
    }
  });
  std::vector<double> total(size, 0.0);
  for (size_t g = 0; g < groups; ++g) {
    for (size_t i = 0; i < size; ++i) total[i] += static_cast<double>(partial[g * size + i]);
  }
  for (size_t d = 0; d < D; ++d) {
    dbias[d] = static_cast<float>(total[d]);
    for (size_t c = 0; c < channels; ++c) {
      dweight[d * channels + c] = static_cast<float>(total[(c + 1) * D + d]);
    }
  }
}

}  // namespace rotrnn::kernels
