#pragma once

#include <torch/torch.h>

#include "rotrnn/layers/layer.h"
#include "rotrnn/layers/lru.h"
#include "rotrnn/layers/rotrnn_options.h"

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
/// M [H, dh, dh] (zero and no parameter unless learn_rotation), B [H, dh, D], C [D, N], D [D], and
/// C_reverse [D, N] when bidirectional.
/// States given and returned are z = Pᵀx, in the planes of `System`.
class RotRNNImpl : public DiagonalLayer {
 public:
  /// Checks the sizes and draws the initial values: a pure function of (seed, stream).
  explicit RotRNNImpl(const RotRNNOptions& options, uint64_t seed = 0, uint64_t stream = 0);

  /// Parameters to system: the only place where the paper's symbols meet the engine's.
  System system() const override;

  /// The same by batched kernels with their own derivative (rotrnn_fused.h).
  std::vector<System> fused_systems(const std::vector<const DiagonalLayer*>& layers, int threads,
                                    double* seconds = nullptr) const override;

  ParameterGroup group(const std::string& parameter) const override;

  /// ‖x_t‖₂ of every head, [.., H].
  torch::Tensor state_norms(const torch::Tensor& z) const override;

  /// Runs the layer over a packed batch.
  RotRNNOutput forward(const Packed& u, const States& initial = {}, bool want_hidden = false);

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

/// The LRU that computes the same: its states share γ within a head. In double, detached;
/// Lru::load takes them.
LruParameters to_lru(const RotRNNImpl& layer);

}  // namespace rotrnn
