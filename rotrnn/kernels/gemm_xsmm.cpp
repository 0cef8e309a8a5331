#include <libxsmm.h>

#include <cstring>

#include "rotrnn/kernels/gemm.h"

/// libxsmm is column-major, so a row-major C = A·B is asked for as Cᵀ = Bᵀ·Aᵀ: its "A" is our B.
/// Kernels are generated per shape and kept by libxsmm. Called with whole matrices they reach
/// 50–68 GFLOP/s a core, on blocks of K 64–96 × N 32–64 88–99: hence the blocks.
namespace rotrnn::kernels {
namespace {

constexpr size_t kBlockK = 96;
constexpr size_t kBlockN = 32;

size_t least(size_t a, size_t b) {
  return a < b ? a : b;
}

libxsmm_smmfunction kernel(int flags, size_t m, size_t n, size_t k, size_t lda, size_t ldb,
                           size_t ldc, bool add) {
  const auto i = [](size_t v) { return static_cast<libxsmm_blasint>(v); };
  const libxsmm_blasint a = i(lda), b = i(ldb), c = i(ldc);
  const float alpha = 1.0f, beta = add ? 1.0f : 0.0f;
  const int prefetch = LIBXSMM_PREFETCH_NONE;
  return libxsmm_smmdispatch(i(m), i(n), i(k), &a, &b, &c, &alpha, &beta, &flags, &prefetch);
}

/// The largest part of `rest` rows, so that ragged tiles need few kernels: 32, then powers of two.
size_t row_part(size_t rest) {
  size_t part = 32;
  while (part > rest) part /= 2;
  return part;
}

size_t packed_size(size_t K, size_t N) {
  return K * N;
}

// Blocks in the order of use: all K blocks of the first N block, then of the next.
void pack(float* packed, const float* b, size_t K, size_t N, size_t row_step, size_t col_step) {
  for (size_t n = 0; n < N; n += kBlockN) {
    const size_t width = least(kBlockN, N - n);
    float* to = packed + n * K;
    for (size_t k = 0; k < K; ++k) {
      const float* from = b + k * row_step + n * col_step;
      for (size_t j = 0; j < width; ++j) to[k * width + j] = from[j * col_step];
    }
  }
}

void multiply(float* c, size_t ldc, const float* a, size_t lda, const float* packed, size_t M,
              size_t K, size_t N, bool add) {
  for (size_t n = 0; n < N; n += kBlockN) {
    const size_t width = least(kBlockN, N - n);
    for (size_t k = 0; k < K; k += kBlockK) {
      const size_t depth = least(kBlockK, K - k);
      const float* block = packed + n * K + k * width;
      for (size_t m = 0; m < M;) {
        const size_t rows = row_part(M - m);
        kernel(LIBXSMM_GEMM_FLAG_NONE, width, rows, depth, width, lda, ldc, add || k > 0)(
            block, a + m * lda + k, c + m * ldc + n);
        m += rows;
      }
    }
  }
}

void outer(float* c, size_t ldc, const float* a, size_t lda, const float* b, size_t ldb, size_t R,
           size_t K, size_t N, bool add) {
  for (size_t k = 0; k < K;) {
    const size_t depth = K - k >= 96 ? 96 : row_part(K - k);
    for (size_t n = 0; n < N; n += kBlockN) {
      const size_t width = least(kBlockN, N - n);
      for (size_t r = 0; r < R;) {
        const size_t rows = row_part(R - r);
        kernel(LIBXSMM_GEMM_FLAG_TRANS_B, width, rows, depth, ldb, lda, ldc, add || k > 0)(
            b + k * ldb + n, a + k * lda + r, c + r * ldc + n);
        r += rows;
      }
    }
    k += depth;
  }
}

}  // namespace

const Gemm* gemm_xsmm() {
  static const Gemm back_end = {"xsmm", packed_size, pack, multiply, outer};
  return &back_end;
}

}  // namespace rotrnn::kernels
