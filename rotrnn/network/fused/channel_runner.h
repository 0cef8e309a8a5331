#pragma once

#include "rotrnn/base/arena.h"
#include "rotrnn/kernels/block/plan.h"
#include "rotrnn/kernels/recurrence/channel.h"
#include "rotrnn/kernels/recurrence/convolve.h"
#include "rotrnn/spec/description.h"

namespace rotrnn {

/// A batch, and on how many threads it is done (0: all that the process may use).
struct ChannelBatch {
  kernels::PackedSequences sequences;
  int threads = 0;
};

/// What goes in: u [n, D]. States are those of channel.h, forward in time, before the first tokens,
/// [sequences, 2·N·D]; null: 0.
struct ChannelRunInput {
  const float* u = nullptr;
  const float* initial = nullptr;
};

/// What comes out: y [n, D], without D⊙u and not u; final states, null: not wanted. `kept`, null or
/// kept_size() numbers: what backward would otherwise recompute.
struct ChannelRunOutput {
  float* y = nullptr;
  float* final = nullptr;
  float* kept = nullptr;
};

/// The gradients of what came out; `final` may be null. `kept` as forward left it, or null.
struct ChannelRunOutputGradient {
  const float* y = nullptr;
  const float* final = nullptr;
  const float* kept = nullptr;
};

/// Overwritten: du [n, D], not dy; all of `layer` but D, which is not looked at; `initial`, unless
/// it is null.
struct ChannelRunGradient {
  float* u = nullptr;
  Channel<float>* layer = nullptr;
  float* initial = nullptr;
};

/// Runs layers whose channels do not meet: convolutions with products of inputs
/// (kernels/recurrence/convolve.h, products.h), and recurrences (channel.h). A recurrence is run as
/// it is, or, where that is less work for a batch, once for its kernels (what an impulse gives) and
/// as a convolution with them; as it is whenever states are given, wanted or have gradients.
///
/// It holds scratch memory alone, and may serve all layers of a network, one at a time. A
/// convolution begins with no state and shows none: std::invalid_argument when they are asked for.
class ChannelRunner {
 public:
  /// As fits the batch, or always one way (for tests).
  enum class Way { less_work, recurrence, convolution };

  explicit ChannelRunner(Way way = Way::less_work) : way_(way) {}

  size_t kept_size(const Channel<float>& layer, const ChannelBatch& batch) const;
  void forward(const Channel<float>& layer, const ChannelBatch& batch, const ChannelRunInput& input,
               const ChannelRunOutput& output);
  void backward(const Channel<float>& layer, const ChannelBatch& batch,
                const ChannelRunInput& input, const ChannelRunOutputGradient& gradient,
                const ChannelRunGradient& out);

 private:
  bool as_kernels(const Channel<float>& layer, const ChannelBatch& batch) const;
  void convolution_forward(const Channel<float>& layer, const ChannelBatch& batch, const float* u,
                           float* y);
  void convolution_backward(const Channel<float>& layer, const ChannelBatch& batch, const float* u,
                            const float* dy, float* du, Channel<float>& out);
  void impulse_forward(const Channel<float>& layer, const ChannelBatch& batch, float* kernels);
  void impulse_backward(const Channel<float>& layer, const ChannelBatch& batch, const float* u,
                        const float* dy, const float* kernels, float* du, Channel<float>& out);

  Way way_;
  kernels::Arena scratch_, work_;  // of the kernels, and of what calls them
};

}  // namespace rotrnn
