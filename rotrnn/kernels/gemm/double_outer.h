#pragma once

#include <cstddef>

namespace rotrnn::kernels {

/// C [R, N] += sign·AᵀB in double, with A [K, R] and B [K, N], all row-major, `ld` from row to row.
/// The same bits for any number of threads.
void double_outer(double* c, size_t ldc, const double* a, size_t lda, const double* b, size_t ldb,
                  size_t R, size_t K, size_t N, double sign, int threads);

/// Copies K rows of `width` columns into panels [K, double_panel] one after the other, padded with
/// zeros: what add_product of the SIMD table takes.
void double_pack(double* packed, const double* from, size_t ld, size_t K, size_t width);

}  // namespace rotrnn::kernels
