#pragma once

#include <cstddef>

#include "rotrnn/base/arena.h"
#include "rotrnn/kernels/block/plan.h"
#include "rotrnn/spec/description.h"

/// Layers whose channels do not meet (Channel in spec/description.h), run as recurrences on packed
/// ragged batches: every channel d < D has N complex states of its own,
/// all driven by its one input (S4D with its input matrix folded into c).
///
///   x_t = λ⊙x_{t-1} + u_t                        u_{t,d} added to the N states of channel d
///   y_{t,d} = Σ_n Re(c_{n,d}·x_{t,n,d}) + D_d·u_{t,d}
///   bidirectional: + Σ_n Re(c'_{n,d}·x←_{t+1,n,d}),   x←_t = λ⊙x←_{t+1} + u_t, 0 beyond the end
///
/// Backward keeps nothing from forward. With h_t = dy_t + conj(λ)h_{t+1}, the gradient of x_t over
/// conj(c), and p_t = h_{t+1} + conj(λ)p_{t+1}, all comes from one walk over u and dy:
///   ∂L/∂u_t = Σ_n Re(conj(c)·h_t),   ∂L/∂c = Σ_t u_t·h_t,   ∂L/∂λ = conj(c)·Σ_t u_t·p_t
/// since Σ_t h_t·conj(x_{t-1}), the usual sum, is Σ_t u_t·p_t: states need not be computed again.
/// (Complex gradients are ∂/∂Re + i·∂/∂Im, as in scan.h.)
///
/// Channels do not meet, so threads share (sequences, channels) and never cut time; the bits are
/// the same for any number of threads.
namespace rotrnn::kernels {

struct ChannelConfig {
  int threads = 0;  // 0: all that the process may use
};

/// A layer with its sizes. Optional: c_reverse (null: forward in time only) and D (null: 0).
/// Kernels and products are not looked at.
using ChannelLayer = ChannelFields<const float*>;

/// Optional: initial, the states before the first tokens [sequences, 2·N·D] (re plane [N, D], then
/// im); those of x← are zero.
struct ChannelInput {
  const float* u = nullptr;  // [n, D]
  const float* initial = nullptr;
};

/// Optional: final, the states after the last tokens, laid out like initial.
struct ChannelOutput {
  float* y = nullptr;  // [n, D], not u
  float* final = nullptr;
};

/// Optional: final.
struct ChannelOutputGradient {
  const float* y = nullptr;
  const float* final = nullptr;
};

/// Each laid out like what it is the gradient of, and overwritten. All but u are optional.
struct ChannelGradients {
  float* u = nullptr;  // [n, D], not the gradient of y
  ChannelFields<float*> layer;
  float* initial = nullptr;
};

/// Resets scratch, as backward does.
void channel_forward(const ChannelConfig& config, const PackedSequences& sequences,
                     const ChannelLayer& layer, const ChannelInput& input,
                     const ChannelOutput& output, Arena& scratch);

/// `input` as given to forward.
void channel_backward(const ChannelConfig& config, const PackedSequences& sequences,
                      const ChannelLayer& layer, const ChannelInput& input,
                      const ChannelOutputGradient& gradient, const ChannelGradients& gradients,
                      Arena& scratch);

}  // namespace rotrnn::kernels
