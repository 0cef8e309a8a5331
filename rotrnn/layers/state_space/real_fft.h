#pragma once

#include <cstddef>

namespace rotrnn {

/// x_t = 1/n·Σ_j X_j e^{2πijt/n} of real rows, in double, for any n ≥ 1: X [rows, ⌊n/2⌋ + 1] (re,
/// im) has one of each conjugate pair of frequencies (what X_0 and an even n's last have of
/// imaginary parts is ignored); x is [n, rows] with `stride` numbers from a step to the next.
///
/// Mixed radix, and Bluestein's convolution where n has a prime above 13. Plans are kept for the
/// process. The bits do not depend on the threads.
void inverse_real_fft(int threads, size_t rows, size_t n, const double* X, double* x,
                      size_t stride);

/// Its adjoint, dX overwritten (d/dRe, d/dIm): every frequency stands for itself and its conjugate,
/// but for the first and an even n's last, so dX_j = w_j·Σ_t dx_t e^{-2πijt/n} with w = 1/n for
/// those and 2/n for the others.
void inverse_real_fft_backward(int threads, size_t rows, size_t n, const double* dx, size_t stride,
                               double* dX);

}  // namespace rotrnn
