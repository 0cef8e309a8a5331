#include "rotrnn/kernels/gemm/gemm.h"

#include "rotrnn/kernels/simd/simd.h"

namespace rotrnn::kernels {
namespace {

size_t packed_size(size_t K, size_t N) {
  const size_t panel = table().panel_width;
  return K * ((N + panel - 1) / panel * panel);
}

void pack(float* packed, const float* b, size_t K, size_t N, size_t row_step, size_t col_step) {
  table().pack(packed, b, K, N, row_step, col_step);
}

void multiply(float* c, size_t ldc, const float* a, size_t lda, const float* packed, size_t M,
              size_t K, size_t N, bool add) {
  table().multiply(c, ldc, a, lda, packed, M, K, N, add);
}

void outer(float* c, size_t ldc, const float* a, size_t lda, const float* b, size_t ldb, size_t R,
           size_t K, size_t N, bool add) {
  table().outer(c, ldc, a, lda, b, ldb, R, K, N, add);
}

}  // namespace

const Gemm& gemm() {
  static const Gemm back_end = {packed_size, pack, multiply, outer};
  return back_end;
}

size_t padded_stride(size_t n) {
  const size_t lines = (n + 15) / 16;
  return 16 * (lines % 2 == 0 ? lines + 1 : lines);  // an odd number of cache lines: all L1 sets
}

}  // namespace rotrnn::kernels
