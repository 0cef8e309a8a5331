#pragma once

#include <cstddef>

namespace rotrnn::kernels {

/// P = expm(A) for a skew-symmetric A [d, d], double, row-major: P is in SO(d). For d = 2 the
/// rotation itself; else a Taylor polynomial of degree 16 (six products) after scaling to
/// ‖A‖₁ ≤ 0.7, where its remainder is below 1e-17, and squaring.
void expm_skew(const double* A, double* P, size_t d);

/// The gradient of A given that of P, as far as skew-symmetric A can use it: dA - dAᵀ is exact.
/// It is the Fréchet derivative of expm at Aᵀ in the direction dP.
void expm_skew_backward(const double* A, const double* dP, double* dA, size_t d);

}  // namespace rotrnn::kernels
