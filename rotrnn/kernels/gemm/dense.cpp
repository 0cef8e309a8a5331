#include "rotrnn/kernels/gemm/dense.h"

#include <algorithm>
#include <atomic>
#include <vector>

#include "rotrnn/base/arena.h"
#include "rotrnn/base/threads.h"
#include "rotrnn/kernels/gemm/gemm.h"

namespace rotrnn::kernels {
namespace {

constexpr size_t kTile = 64;        // rows of a product
constexpr size_t kGroups = 8;       // of rows, at most: each has a weight gradient of its own
constexpr size_t kGroupRows = 256;  // at least, so that few rows need one group

template <class F>
void for_each(int threads, size_t count, const F& f) {
  std::atomic<size_t> next{0};
  parallel_for(static_cast<int>(std::min<size_t>(static_cast<size_t>(threads), count)), [&](int) {
    for (size_t i; (i = next++) < count;) f(i);
  });
}

}  // namespace

void dense_forward(const Dense& dense, const float* x, size_t n, float* out, int threads) {
  const size_t K = dense.K, N = dense.N;
  if (n == 0) return;
  const Gemm& g = gemm();
  AlignedFloats packed(g.packed_size(K, N));
  g.pack(packed.data(), dense.weight, K, N, 1, K);
  for_each(threads, (n + kTile - 1) / kTile, [&](size_t tile) {
    const size_t begin = tile * kTile, rows = std::min(kTile, n - begin);
    for (size_t t = begin; t < begin + rows; ++t) std::copy_n(dense.bias, N, out + t * N);
    g.multiply(out + begin * N, N, x + begin * K, K, packed.data(), rows, K, N, true);
  });
}

void dense_backward(const Dense& dense, const float* x, size_t n, const float* dout, float* dweight,
                    float* dbias, float* dx, int threads) {
  const size_t K = dense.K, N = dense.N;
  const Gemm& g = gemm();
  if (dx != nullptr && n > 0) {
    AlignedFloats packed(g.packed_size(N, K));
    g.pack(packed.data(), dense.weight, N, K, K, 1);
    for_each(threads, (n + kTile - 1) / kTile, [&](size_t tile) {
      const size_t begin = tile * kTile, rows = std::min(kTile, n - begin);
      g.multiply(dx + begin * K, K, dout + begin * N, N, packed.data(), rows, N, K, false);
    });
  }
  const size_t groups = std::clamp((n + kGroupRows - 1) / kGroupRows, size_t{1}, kGroups);
  AlignedFloats sums((groups - 1) * N * K);
  std::vector<double> biases(groups * N);
  for_each(threads, groups, [&](size_t group) {
    const size_t begin = n * group / groups, rows = n * (group + 1) / groups - begin;
    float* sum = group == 0 ? dweight : sums.data() + (group - 1) * N * K;
    double* bias = biases.data() + group * N;
    if (rows == 0) return std::fill_n(sum, N * K, 0.0f), void();
    g.outer(sum, K, dout + begin * N, N, x + begin * K, K, N, rows, K, false);
    for (size_t t = begin; t < begin + rows; ++t) {
      for (size_t k = 0; k < N; ++k) bias[k] += static_cast<double>(dout[t * N + k]);
    }
  });
  for (size_t group = 1; group < groups; ++group) {
    const float* sum = sums.data() + (group - 1) * N * K;
    for (size_t i = 0; i < N * K; ++i) dweight[i] += sum[i];
    for (size_t k = 0; k < N; ++k) biases[k] += biases[group * N + k];
  }
  for (size_t k = 0; k < N; ++k) dbias[k] = static_cast<float>(biases[k]);
}

}  // namespace rotrnn::kernels
