#pragma once

#include <torch/torch.h>

#include "rotrnn/layers/channel.h"
#include "rotrnn/layers/channel_layer.h"
#include "rotrnn/layers/s4d_options.h"

namespace rotrnn {

/// S4D (Gu, Gupta, Goel, Ré 2022): every channel is a state-space model of its own with a diagonal
/// state matrix, one complex state for each conjugate pair.
///
///     x_t = Λ̄ ⊙ x_{t-1} + B̄ u_t                         y_t = 2·Re(C x_t) + D u_t
///     Λ = -exp(A_log_re) + i·A_im,    Δ = step_rescale·exp(log_step),    Λ̄ and B̄ as discretise()
///     has them
///
/// Bidirectional: a second C reads the states that come back from the next sample on.
///
/// Parameters, with H = D, or 1 when tied: A_log_re, A_im [H, N/2], B_re, B_im [H, N/2] (buffers
/// unless train_b), C_re, C_im [D, N/2], D [D], log_step [D], and C_reverse_re, C_reverse_im
/// [D, N/2] when bidirectional.
class S4DImpl : public ChannelLayer {
 public:
  explicit S4DImpl(const S4DOptions& options, uint64_t seed = 0, uint64_t stream = 0);

  /// The map: x is divided by B̄, which goes into c = 2·C·B̄. In double, differentiable.
  ChannelSystem channels() const;
  ChannelRecurrence recurrence() const override;

  /// The kernels of the same layer as a convolution, [D, L] in double; the second is undefined when
  /// unidirectional.
  std::pair<torch::Tensor, torch::Tensor> kernels(int64_t length) const;

  bool fusible() const override { return true; }
  FusedChannels fused_channels(const Layout& layout, double* seconds = nullptr) const override;
  SystemOutput forward(const Packed& u, const States& initial = {},
                       bool fast = false) const override;
  ParameterGroup group(const std::string& parameter) const override;

  const S4DOptions& options() const { return options_; }
  void pretty_print(std::ostream& stream) const override;

  torch::Tensor A_log_re, A_im, B_re, B_im, C_re, C_im, C_reverse_re, C_reverse_im, D, log_step;

 private:
  S4DOptions options_;
};
TORCH_MODULE(S4D);

}  // namespace rotrnn
