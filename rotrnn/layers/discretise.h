#pragma once

#include <torch/torch.h>

#include "rotrnn/layers/discretisation.h"

namespace rotrnn {

/// x' = Λx + Bu to x_t = lambda·x_{t-1} + scale·B·u_t.
///
///     zoh:       lambda = e^{ΛΔ},                   scale = (e^{ΛΔ} - 1)/Λ
///     bilinear:  lambda = (1 + ΔΛ/2)/(1 - ΔΛ/2),    scale = Δ/(1 - ΔΛ/2)
struct Discrete {
  torch::Tensor lambda, scale;
};

/// Lambda complex double, step real double, of shapes that broadcast. Differentiable.
Discrete discretise(const torch::Tensor& Lambda, const torch::Tensor& step, Discretisation rule);

/// Two parts as one complex number, in double.
torch::Tensor join(const torch::Tensor& re, const torch::Tensor& im);

}  // namespace rotrnn
