#pragma once

#include <torch/torch.h>

#include <functional>
#include <vector>

#include "rotrnn/kernels/arena.h"
#include "rotrnn/kernels/plan.h"
#include "rotrnn/layers/packed.h"

namespace rotrnn {

/// A pass over a whole batch: u and y [n, D]. The kernels get one arena, the
/// caller of them the other.
struct ChannelPass {
  kernels::Sequences sequences;
  int threads = 0;
  kernels::Arena *scratch = nullptr, *work = nullptr;
  const float* u = nullptr;
  float* y = nullptr;                       // forward
  const float* dy = nullptr;                // backward
  float* du = nullptr;                      // overwritten
  const std::vector<float*>* dt = nullptr;  // of the tensors, overwritten
};

/// A layer whose channels do not meet, as the fused kernels run it in place of
/// a System: the tensors that the graph knows, float32 and contiguous, and both
/// passes; y without D⊙u.
struct FusedChannels {
  std::vector<torch::Tensor> tensors;
  torch::Tensor D;  // [D]
  std::function<void(const ChannelPass&)> forward, backward;
};

/// Convolutions (kernels/convolve.h) with kernels [L, D], the second undefined
/// or the reverse one; and products of neighbouring inputs with coefficients
/// [orders, D], where they are defined.
FusedChannels fused_convolution(const torch::Tensor& K, const torch::Tensor& K_reverse,
                                const torch::Tensor& coefficients);

/// The planes of a ChannelSystem, [N, D]; those of the reverse direction may be
/// undefined.
struct ChannelPlanes {
  torch::Tensor lambda_re, lambda_im, c_re, c_im, c_reverse_re, c_reverse_im;
};

/// Recurrences (kernels/channel.h): as they are, or, where that is less work
/// for a batch of this layout, one for the kernels (what an impulse gives), and
/// convolutions with them.
FusedChannels fused_recurrence(const ChannelPlanes& planes, const Layout& layout);

/// The same, not asking what is less work.
FusedChannels fused_recurrence(const ChannelPlanes& planes, int64_t longest, bool convolve);

}  // namespace rotrnn
