#pragma once

#include <torch/torch.h>

#include "rotrnn/layers/packed.h"

namespace rotrnn {

/// The one form that every mixing layer maps its parameters to:
///
///     z_t = λ ⊙ z_{t-1} + W u_t + b        y_t = V·[Re z_t; Im z_t] + D ⊙ u_t + e
///
/// with S complex states z, kept as two real planes: all real parts, then all imaginary parts. The
/// reverse direction runs the same recurrence from the end and adds V_reverse·[Re z; Im z].
/// Tensors may be of higher precision than the sequence; they are rounded when it is run.
struct System {
  torch::Tensor lambda_re, lambda_im;  // [S], or one λ per token: [tokens, S]
  torch::Tensor W;                     // [2S, D]
  torch::Tensor V;                     // [D, 2S]
  torch::Tensor V_reverse;             // [D, 2S], undefined when unidirectional
  torch::Tensor D;                     // [D]
  torch::Tensor b, e;                  // [2S], [D], undefined when zero
  // Without an initial state, z_0 = start ⊙ (W u_1 + b), u_1 being the first input in that
  // direction; undefined: z_0 = 0. This is how a layer can start in its stationary distribution.
  torch::Tensor start_re, start_im;  // [S]

  int64_t states() const { return W.size(0) / 2; }
  int64_t width() const { return W.size(1); }
  bool bidirectional() const { return V_reverse.defined(); }
};

/// States of a batch at one moment, planes side by side. Undefined means zero, or not given.
struct States {
  torch::Tensor forward;  // [sequences, 2S]
  torch::Tensor reverse;  // [sequences, 2S]
};

/// What running a system gives.
struct SystemOutput {
  torch::Tensor y;             // [tokens, D]
  torch::Tensor z, z_reverse;  // [tokens, 2S], the second undefined when unidirectional
  States final;                // forward: after the last token; reverse: after the first
};

/// Runs a system over a packed batch in ATen operations alone, on any device, differentiable in
/// everything. This is the reference that the fused kernels are tested against.
SystemOutput run_system(const System& system, const Packed& u, const States& initial = {});

/// What one token gives.
struct StepOutput {
  torch::Tensor y;  // [sequences, D]
  torch::Tensor z;  // [sequences, 2S]
};

/// One token of every sequence, as a stream gives them: u [sequences, D], and z the states before
/// it, undefined at the beginning. Step after step this is `run_system`, forward only.
StepOutput step(const System& system, const torch::Tensor& z, const torch::Tensor& u);

}  // namespace rotrnn
