#pragma once

#include <cstddef>
#include <cstdint>

#include "rotrnn/base/arena.h"
#include "rotrnn/kernels/block/plan.h"

/// A bank of decayed rotations on raw samples: for each channel and band, with ξ² = 1 - γ²,
///
///     z_t = γ·e^{iθ}·z_{t-1} + ξ·x_t        p_j = mean of |z_t|² over the n samples of token j
///     token_j = (log(p_j + 1e-7) - mean)/deviation
///
/// A token takes `hop` samples; a last partial hop counts only when it is the only one. The kernel
/// runs w = z/ξ, driven by x itself, and puts ξ² into the mean: six operations per sample and band.
///
/// Adjoint, with P = p + 1e-7 and g = ∂L/∂p = dtoken/(deviation·P) of the token of t:
///
///     h_t = 2·g·ξ²/n·w_t + conj(λ)·h_{t+1}      λ = γ·e^{iθ};  ∂L/∂x_t = Re h_t
///     ∂L/∂λ = Σ_t h_t·conj(w_{t-1})             (complex gradients are ∂/∂Re + i·∂/∂Im)
///     ∂L/∂ξ² = Σ_j g·p/ξ²
namespace rotrnn::kernels {

/// θ and log(-log γ) [bands]; mean and deviation [channels, bands], null: 0 and 1.
struct RotationParameters {
  size_t channels = 1, bands = 0, hop = 1;
  const float *theta = nullptr, *gamma_log = nullptr;
  const float *mean = nullptr, *deviation = nullptr;
};

/// Where a stream is: planes of RotationBank::state_size() floats, aligned to a cache line, and
/// samples of the current hop so far. All zero at the beginning.
struct RotationState {
  float* planes = nullptr;
  size_t count = 0;
};

/// The bank, packed for the kernels. Its numbers belong to it: parameters may go.
class RotationBank {
 public:
  /// Takes its planes from `memory`.
  RotationBank(const RotationParameters& parameters, Arena& memory);

  size_t channels() const { return channels_; }
  size_t bands() const { return bands_; }
  size_t hop() const { return hop_; }
  /// Numbers of a token: [channels, bands].
  size_t outputs() const { return channels_ * bands_; }
  size_t tokens(size_t samples) const { return samples < hop_ ? 1 : samples / hop_; }
  size_t state_size() const { return 3 * plane_; }
  /// Floats that forward keeps per token for backward.
  size_t kept_size() const { return 2 * plane_; }

  /// Takes samples [count, channels], in portions of any size, and writes the tokens that they
  /// complete, [up to (state.count + count)/hop, outputs]; how many is returned. The same bits for
  /// any portions.
  size_t run(const float* x, size_t count, RotationState& state, float* out) const;

  /// The token of the samples so far, where they are fewer than a hop; the state stays.
  void partial(const RotationState& state, float* out) const;

 private:
  friend class RotationBackward;
  friend void rotations_forward(const RotationBank& bank, const PackedSequences& sequences,
                                const int64_t* tokens, const float* x, float* out, float* kept,
                                int threads);

  void write(const float* planes, size_t count, float* out) const;

  size_t channels_, bands_, hop_;
  size_t padded_, plane_;  // bands rounded up to whole vectors; channels times that
  const float *lambda_re_, *lambda_im_, *xi2_;  // [padded]
  const float *mean_, *inverse_;                // [channels, padded]
  const double *theta_, *gamma_log_;            // [bands]
};

/// Tokens [n, outputs] of packed samples [m, channels]; `tokens` are their offsets, `kept` null or
/// [n, kept_size] for backward. Threads share the sequences; the same bits for any number of them.
void rotations_forward(const RotationBank& bank, const PackedSequences& sequences,
                       const int64_t* tokens, const float* x, float* out, float* kept, int threads);

/// What backward writes: [bands] each, and [m, channels] if not null.
struct RotationGradients {
  double *theta = nullptr, *gamma_log = nullptr;
  float* x = nullptr;
};

/// The adjoint of rotations_forward, with the same bits for any number of threads. Resets scratch.
void rotations_backward(const RotationBank& bank, const PackedSequences& sequences,
                        const int64_t* tokens, const float* x, const float* kept,
                        const float* dtokens, const RotationGradients& gradients, int threads,
                        Arena& scratch);

}  // namespace rotrnn::kernels
