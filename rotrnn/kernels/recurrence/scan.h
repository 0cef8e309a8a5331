#pragma once

#include <cstddef>

namespace rotrnn::kernels {

/// The complex diagonal scan over rows [re plane | im plane] of 2S floats, `ld` floats apart:
///   z_t = λ_t ⊙ z_{t-1} + v_t            v in, z out, in place
/// and its adjoint (complex gradients are ∂/∂Re + i·∂/∂Im):
///   g_t = ∂L/∂z_t + conj(λ_{t+1})·g_{t+1},   ∂L/∂v_t = g_t,   ∂L/∂λ_t = g_t·conj(z_{t-1})
/// `reverse` runs from the last row to the first.
struct ScanSystem {
  size_t S;
  const float *lambda_re, *lambda_im;
  size_t lambda_stride = 0;  // 0: one λ for all rows; else floats from row to row
  bool reverse = false;
};

/// state [2S]: z before the first row on entry, z of the last row on return.
void scan_forward(const ScanSystem& system, float* z, size_t ld, size_t rows, float* state);

/// g: ∂L/∂z in, ∂L/∂v out. z as scan_forward left it, z_before [2S] its initial state. carry [2S]:
/// gradient of the final state on entry, of the initial state on return. The gradient of λ is added
/// to lambda_sum [2S] (constant λ), or written to dlambda_re, dlambda_im laid out like λ.
void scan_backward(const ScanSystem& system, float* g, size_t ldg, const float* z, size_t ldz,
                   size_t rows, const float* z_before, float* carry, double* lambda_sum,
                   float* dlambda_re, float* dlambda_im);

}  // namespace rotrnn::kernels
