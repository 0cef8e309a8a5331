#pragma once

#include <torch/torch.h>

#include "rotrnn/layers/layer.h"
#include "rotrnn/layers/s5_options.h"

namespace rotrnn {

/// S5 (Smith, Warrington, Linderman 2023): a continuous state-space model that starts as HiPPO-N
/// in its eigenbasis, one complex state for each conjugate pair, discretised by a learned time
/// step for each state.
///
///     x_t = Λ̄ ⊙ x_{t-1} + B̄ u_t                         y_t = 2·Re(C x_t) + D ⊙ u_t
///     zoh:       Λ̄ = e^{ΛΔ},                   B̄ = (e^{ΛΔ} - 1)/Λ · B
///     bilinear:  Λ̄ = (1 + ΔΛ/2)/(1 - ΔΛ/2),    B̄ = Δ/(1 - ΔΛ/2) · B
///     Δ = step_rescale · e^{log_step}
///
/// Parameters, with S = P/2: Lambda_re, Lambda_im, log_step [S], B_re, B_im [S, D], C_re, C_im
/// [D, S], D [D], and C_reverse_re, C_reverse_im [D, S] when bidirectional.
class S5Impl : public DiagonalLayer {
 public:
  explicit S5Impl(const S5Options& options, uint64_t seed = 0, uint64_t stream = 0);

  System system() const override;
  ParameterGroup group(const std::string& parameter) const override;

  /// The norm of the whole state, conjugates included: that of the P real dimensions.
  torch::Tensor state_norms(const torch::Tensor& z) const override;

  const S5Options& options() const { return options_; }
  void pretty_print(std::ostream& stream) const override;

  torch::Tensor Lambda_re, Lambda_im, B_re, B_im, C_re, C_im, C_reverse_re, C_reverse_im, D,
      log_step;

 private:
  S5Options options_;
};
TORCH_MODULE(S5);

}  // namespace rotrnn
