#include "rotrnn/kernels/gemm/double_outer.h"

#include <algorithm>
#include <atomic>
#include <vector>

#include "rotrnn/base/threads.h"
#include "rotrnn/kernels/simd/simd.h"

namespace rotrnn::kernels {
namespace {

// Rows that a product sums before it goes to memory: two panels of 128 rows fill half of L1.
constexpr size_t kDepth = 128;

size_t panels(size_t width) {
  const size_t panel = table().double_panel;
  return (width + panel - 1) / panel;
}

}  // namespace

void double_pack(double* packed, const double* from, size_t ld, size_t K, size_t width) {
  const size_t panel = table().double_panel;
  for (size_t at = 0; at < width; at += panel) {
    const size_t n = std::min(panel, width - at);
    for (size_t k = 0; k < K; ++k, packed += panel) {
      std::copy_n(from + k * ld + at, n, packed);
      std::fill(packed + n, packed + panel, 0.0);
    }
  }
}

void double_outer(double* c, size_t ldc, const double* a, size_t lda, const double* b, size_t ldb,
                  size_t R, size_t K, size_t N, double sign, int threads) {
  const Table& simd = table();
  const size_t panel = simd.double_panel, down = panels(R), across = panels(N);
  std::vector<double> pa(down * panel * kDepth), pb(across * panel * kDepth);
  for (size_t k = 0; k < K; k += kDepth) {
    const size_t depth = std::min(kDepth, K - k);
    double_pack(pa.data(), a + k * lda, lda, depth, R);
    double_pack(pb.data(), b + k * ldb, ldb, depth, N);
    std::atomic<size_t> next{0};
    parallel_for(threads, [&](int) {
      for (size_t i; (i = next++) < down;) {
        for (size_t j = 0; j < across; ++j) {
          simd.add_product(c + i * panel * ldc + j * panel, ldc, pa.data() + i * panel * depth,
                           pb.data() + j * panel * depth, depth, std::min(panel, R - i * panel),
                           std::min(panel, N - j * panel), sign);
        }
      }
    });
  }
}

}  // namespace rotrnn::kernels
