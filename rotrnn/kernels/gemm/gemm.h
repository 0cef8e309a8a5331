#pragma once

#include <cstddef>

namespace rotrnn::kernels {

/// A tile GEMM back end. Weights are packed once per step; the tile (tens to hundreds of rows) then
/// meets the packed matrix many times. All matrices row-major float32, any sizes.
struct Gemm {
  /// Floats needed for a packed B [K, N].
  size_t (*packed_size)(size_t K, size_t N);

  /// Packs B, whose element (k, n) is at b[k·row_step + n·col_step].
  void (*pack)(float* packed, const float* b, size_t K, size_t N, size_t row_step, size_t col_step);

  /// C[M, N] = A[M, K]·B, or += if add.
  void (*multiply)(float* c, size_t ldc, const float* a, size_t lda, const float* packed, size_t M,
                   size_t K, size_t N, bool add);

  /// C[R, N] = AᵀB, or += if add, with A [K, R] and B [K, N]: a weight gradient. Wants ld that are
  /// not multiples of 64 floats (rows 256 bytes apart share L1 sets): see padded_stride.
  void (*outer)(float* c, size_t ldc, const float* a, size_t lda, const float* b, size_t ldb,
                size_t R, size_t K, size_t N, bool add);
};

/// The packed micro-kernel of the SIMD target in use.
const Gemm& gemm();

/// A row stride ≥ n for tiles that `outer` reads by columns.
size_t padded_stride(size_t n);

}  // namespace rotrnn::kernels
