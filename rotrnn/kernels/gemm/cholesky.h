#pragma once

#include <cstddef>

namespace rotrnn::kernels {

/// A symmetric positive matrix A = UᵀU [n, n], right-hand sides [n, m], in double, in place:
///
///     upper triangle of A  →  U, without its diagonal blocks
///     right-hand sides B   →  U⁻ᵀB
///     lower triangle of A  →  W = U⁻ᵀ, when the inverse is wanted: A⁻¹ = WᵀW; else what it was
///
/// In the diagonal blocks, of kCholeskyBlock rows, is W in both cases. Rows of A and B are `ld` and
/// `ldb` apart. False, with A lost, where A is not positive to rounding. The same bits for any
/// number of threads.
bool cholesky(double* a, size_t ld, size_t n, bool inverse, double* b, size_t ldb, size_t m,
              int threads);

/// B ← U⁻¹B after that: with it B is A⁻¹ times what it was at first.
void cholesky_back(const double* a, size_t ld, size_t n, double* b, size_t ldb, size_t m);

inline constexpr size_t kCholeskyBlock = 128;

}  // namespace rotrnn::kernels
