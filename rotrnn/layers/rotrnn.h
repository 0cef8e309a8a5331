#pragma once

#include <torch/torch.h>

#include "rotrnn/kernels/random.h"
#include "rotrnn/layers/rotrnn_options.h"
#include "rotrnn/layers/system.h"

namespace rotrnn {

/// What one pass through a RotRNN layer gives; the last two only on request.
struct RotRNNOutput {
  torch::Tensor y;           // [tokens, D]
  States final;              // z after the last token (reverse: after the first)
  torch::Tensor hidden;      // [tokens, N] the paper's x_t, forward direction
  torch::Tensor head_norms;  // [tokens, H] ‖x_t‖₂ of every head, forward direction
};

/// RotRNN (Biegun, Dolga, Cunningham, Barber 2024): a linear recurrence whose state matrix is a
/// learned rotation, so that the state neither explodes nor vanishes.
///
///     x_t = γ_h P_h Θ_h P_hᵀ x_{t-1} + ξ_h B_h u_t            for every head h
///     y_t = C · concat_h(x_t) + D ⊙ u_t
///     P_h = expm(M_h - M_hᵀ),   γ_h = exp(-exp(gamma_log_h)),   ξ_h = √((1 - γ_h²) / ‖B_h‖²_F)
///
/// Parameters: theta [H, ⌊dh/2⌋] (theta_log when stored as its logarithm), gamma_log [H],
/// M [H, dh, dh], B [H, dh, D], C [D, N], D [D], and C_reverse [D, N] when bidirectional.
/// States given and returned are z = Pᵀx, in the planes of `System`.
class RotRNNImpl : public torch::nn::Module {
 public:
  /// Checks the sizes and draws the initial values: a pure function of (seed, stream).
  explicit RotRNNImpl(const RotRNNOptions& options, uint64_t seed = 0, uint64_t stream = 0);

  /// Parameters to system: the only place where the paper's symbols meet the engine's.
  System system() const;

  /// Runs the layer over a packed batch.
  RotRNNOutput forward(const Packed& u, const States& initial = {}, bool want_hidden = false);

  /// The padded form: u [batch, time, D] and the true lengths; y is zero after the end.
  torch::Tensor forward_padded(const torch::Tensor& u, const std::vector<int64_t>& lengths);

  /// z [.., 2S] in the paper's coordinates, x = P z, [.., N].
  torch::Tensor hidden(const torch::Tensor& z) const;

  /// The inverse of `hidden`: z = Pᵀx as planes.
  torch::Tensor folded(const torch::Tensor& x) const;

  /// γ [H], θ [H, ⌊dh/2⌋] and P [H, dh, dh], in double.
  torch::Tensor gamma() const;
  torch::Tensor angles() const;
  torch::Tensor rotation() const;

  const RotRNNOptions& options() const { return options_; }
  void pretty_print(std::ostream& stream) const override;

  torch::Tensor theta, gamma_log, M, B, C, D, C_reverse;

 private:
  bool theta_is_log() const;

  RotRNNOptions options_;
};
TORCH_MODULE(RotRNN);

/// Throws std::invalid_argument when the sizes or settings cannot be.
void check(const RotRNNOptions& options);

/// The parameters of an LRU (Orvieto et al. 2023) with S complex states that computes the same:
/// λ = exp(-e^{nu_log} + i·e^{theta_log}), z_t = λ z_{t-1} + e^{gamma_log} ⊙ (B u_t),
/// y_t = Re(C z_t) + D ⊙ u_t.
struct LruParameters {
  torch::Tensor nu_log, theta_log, gamma_log;  // [S]
  torch::Tensor B_re, B_im;                    // [S, D]
  torch::Tensor C_re, C_im;                    // [D, S]
  torch::Tensor C_reverse_re, C_reverse_im;    // [D, S], undefined when unidirectional
  torch::Tensor D;                             // [D]
};

/// A RotRNN is an LRU whose states share γ within a head; in double, detached.
LruParameters to_lru(const RotRNNImpl& layer);

}  // namespace rotrnn
