#pragma once

#include <complex>

#include "rotrnn/layers/state_space/discretisation.h"

namespace rotrnn {

/// x' = Λx + Bu to x_t = lambda·x_{t-1} + scale·B·u_t, with a step Δ:
///
///     zoh:       lambda = e^{ΛΔ},                   scale = (e^{ΛΔ} - 1)/Λ
///     bilinear:  lambda = (1 + ΔΛ/2)/(1 - ΔΛ/2),    scale = Δ/(1 - ΔΛ/2)
struct Discretised {
  std::complex<double> lambda, scale;
};
Discretised discretise(std::complex<double> Lambda, double step, Discretisation rule);

/// Its adjoint; complex gradients are ∂/∂Re + i·∂/∂Im.
struct DiscretisedGradient {
  std::complex<double> Lambda;
  double step;
};
DiscretisedGradient discretise_backward(std::complex<double> Lambda, double step,
                                        Discretisation rule, const Discretised& gradient);

}  // namespace rotrnn
