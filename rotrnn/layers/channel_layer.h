#pragma once

#include <torch/torch.h>

#include "rotrnn/layers/layer.h"

namespace rotrnn {

/// A layer whose channels do not meet, as streams run it: complex [D, N] in double, undefined where
/// there is none.
///
///     x_t = λ ⊙ x_{t-1} + p·Re Σ_n q_n x_{t-1,n} + b·w_t        y_t = Re Σ_n c_n x_{t,n} + D·u_t
///
/// without p and q the states do not meet either, without b it is 1. w is u; or, with products
/// inside, u_t + Σ_p liquid[p-2]·Π_{j<p} u_{t-j}: else these sums are added to y. In the reverse
/// direction c_reverse reads the state of the next sample, of the same recurrence driven by u.
struct ChannelRecurrence {
  torch::Tensor lambda, c, c_reverse, p, q, b;
  torch::Tensor D;       // [D]
  torch::Tensor liquid;  // [degree - 1, D]
  bool liquid_inside = false;
};

/// A layer that has such a form.
class ChannelLayer : public Layer {
 public:
  /// std::invalid_argument when it cannot be had.
  virtual ChannelRecurrence recurrence() const = 0;
};

}  // namespace rotrnn
