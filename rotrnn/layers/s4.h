#pragma once

#include <torch/torch.h>

#include "rotrnn/layers/channel_layer.h"
#include "rotrnn/layers/dplr.h"
#include "rotrnn/layers/s4_options.h"

namespace rotrnn {

/// A layer of the S4 family as a stream runs it: Ā of `step`, complex double [D, n].
struct S4Steps {
  DplrStep step;
  torch::Tensor B_bar, C;  // [D, n]
  torch::Tensor D;         // [D]
};

/// S4 (Gu, Goel, Ré 2022): every channel is a state-space model of its own, whose state matrix is
/// diagonal plus low rank, run as a convolution.
///
///     x_t = Ā x_{t-1} + B̄ u_t    y_t = 2·Re(C x_t) + D u_t    K_l = 2·Re(C Ā^l B̄)
///     A = Λ - PP*,    Λ = -exp(A_log_re) + i·A_im,    Δ = exp(log_step),    bilinear rule
///
/// The parameter is C̃ = C(1 - Ā^L), from which K comes without powers of Ā (dplr.h). L is kept with
/// the layer; a longer sequence makes C̃ ← C̃(1 + Ā^L), L ← 2L until it fits, which is the same
/// layer. As long as L is 0, C itself is kept, and the first batch's longest sequence becomes L.
///
/// Bidirectional: a second C reads the states that come back from the next sample on.
///
/// Parameters, with H = D, or 1 when tied: A_log_re, A_im, P_re, P_im, B_re, B_im [H, n],
/// C_re, C_im [D, n] (C̃), D, log_step [D], and C_reverse_re, C_reverse_im [D, n] when
/// bidirectional; n = ⌊N/2⌋. Buffer: length, which is L.
class S4Impl : public ChannelLayer {
 public:
  explicit S4Impl(const S4Options& options, uint64_t seed = 0, uint64_t stream = 0);

  /// Λ, P and Δ in double, differentiable; B and C̃ likewise.
  Dplr system() const;
  torch::Tensor input() const;
  torch::Tensor output() const;
  torch::Tensor output_reverse() const;  // undefined when unidirectional

  /// K and K_reverse [D, L] in double; the second is undefined when unidirectional.
  std::pair<torch::Tensor, torch::Tensor> kernels(bool fast = false) const;

  /// C and C_reverse, those of the recurrence.
  std::pair<torch::Tensor, torch::Tensor> plain_outputs() const;

  int64_t length() const { return length_.item<int64_t>(); }

  /// Makes L at least `longest`. Changes C̃ and L, but not what the layer computes.
  void grow(int64_t longest) const;

  /// The layer step by step, and a step of it: u [sequences, D], z [sequences, 2·D·n] (real parts
  /// [D, n], then imaginary parts), undefined at the beginning.
  S4Steps steps() const;
  static StepOutput step(const S4Steps& steps, const torch::Tensor& z, const torch::Tensor& u);

  /// The same with the factors of DplrStep: p = -F, q = 2G, b = B̄, c = 2C.
  ChannelRecurrence recurrence() const override;

  bool fusible() const override { return true; }
  FusedChannels fused_channels(const Layout& layout, double* seconds = nullptr) const override;

  /// By convolution: it takes no initial states and shows none.
  SystemOutput forward(const Packed& u, const States& initial = {},
                       bool fast = false) const override;
  ParameterGroup group(const std::string& parameter) const override;

  const S4Options& options() const { return options_; }
  void pretty_print(std::ostream& stream) const override;

  torch::Tensor A_log_re, A_im, P_re, P_im, B_re, B_im, C_re, C_im, C_reverse_re, C_reverse_im, D,
      log_step;

 protected:
  /// `clip`: of Im B at the start, to ±2.
  S4Impl(const S4Options& options, uint64_t seed, uint64_t stream, bool clip);

  /// Kernels [D, L] of the first pairs that S4 asks for (forward, then reverse), and then K_0 [D]
  /// of those whose B̄ is given and which C̃ reads.
  struct Kernels {
    torch::Tensor K, K_reverse;
    std::vector<torch::Tensor> first;
  };
  Kernels kernels_of(const std::vector<torch::Tensor>& more_inputs, bool fast) const;

  void check_call(const Packed& u, const States& initial) const;

 private:
  S4Options options_;
  torch::Tensor length_;
};
TORCH_MODULE(S4);

}  // namespace rotrnn
