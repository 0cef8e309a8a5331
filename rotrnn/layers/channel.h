#pragma once

#include <torch/torch.h>

#include "rotrnn/layers/system.h"

namespace rotrnn {

/// The form of layers that do not mix channels: every channel has N complex states of its own,
///
///     x_t = λ ⊙ x_{t-1} + u_t        y_t = Σ_n Re(c_n x_{t,n}) + D·u_t
///
/// and in the reverse direction x←_t = λ ⊙ x←_{t+1} + u_t, which adds Σ_n Re(c'_n x←_{t+1,n}): it
/// starts at the next sample, so that no input enters twice. In double; rounded when it is run.
struct ChannelSystem {
  torch::Tensor lambda_re, lambda_im;        // [D, N]
  torch::Tensor c_re, c_im;                  // [D, N]
  torch::Tensor c_reverse_re, c_reverse_im;  // [D, N], undefined when unidirectional
  torch::Tensor D;                           // [D]

  bool bidirectional() const { return c_reverse_re.defined(); }
};

/// std::invalid_argument when the input or the states are not what the system takes.
void check_channels(const ChannelSystem& system, const Packed& u, const States& initial);

/// Runs the recurrence over a packed batch in ATen operations, differentiable in everything.
/// States are [sequences, 2·D·N]: real parts [D, N], then imaginary parts.
SystemOutput run_channels(const ChannelSystem& system, const Packed& u, const States& initial = {});

/// The same system as convolution kernels [D, L]: K_l = Re Σ_n c_n λ_n^l, in double.
torch::Tensor channel_kernel(const torch::Tensor& lambda_re, const torch::Tensor& lambda_im,
                             const torch::Tensor& c_re, const torch::Tensor& c_im, int64_t length);

/// One step of every sequence: u [sequences, D], z [sequences, 2·D·N] or undefined at the
/// beginning.
StepOutput step(const ChannelSystem& system, const torch::Tensor& z, const torch::Tensor& u);

}  // namespace rotrnn
