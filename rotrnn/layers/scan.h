#pragma once

#include <torch/torch.h>

#include "rotrnn/layers/packed.h"

namespace rotrnn {

enum class Direction { forward, reverse };

/// z_t = λ ⊙ z_{t-1} + v_t along every sequence of a packed batch (z_{t+1} when reverse), in ATen
/// operations on any device: O(n) work, the depth of one chunk plus the log of their number.
///
/// v and the result are [tokens, 2S] (real planes, then imaginary planes); λ is [S] or [tokens, S];
/// initial is [sequences, 2S] or undefined for zero. Differentiable in v, λ and initial.
torch::Tensor scan(const torch::Tensor& v, const torch::Tensor& lambda_re,
                   const torch::Tensor& lambda_im, const torch::Tensor& initial,
                   const std::shared_ptr<const Layout>& layout, Direction direction);

}  // namespace rotrnn
