#pragma once

#include <torch/torch.h>

#include "rotrnn/layers/layer.h"
#include "rotrnn/layers/lru_options.h"

namespace rotrnn {

/// The parameters of an LRU with S complex states, γ learned.
struct LruParameters {
  torch::Tensor nu_log, theta_log, gamma_log;  // [S]
  torch::Tensor B_re, B_im;                    // [S, D]
  torch::Tensor C_re, C_im;                    // [D, S]
  torch::Tensor C_reverse_re, C_reverse_im;    // [D, S], undefined when unidirectional
  torch::Tensor D;                             // [D]
};

/// LRU (Orvieto, Smith, Gu, Fernando, Gulcehre, Pascanu, De 2023): a complex diagonal recurrence
/// whose radius and phase are learned.
///
///     λ = exp(-e^{nu_log} + i·e^{theta_log})
///     x_t = λ ⊙ x_{t-1} + e^{gamma_log} ⊙ (B u_t)        y_t = Re(C x_t) + D ⊙ u_t
///
/// Parameters: as in LruParameters; with gamma = "fixed" there is no gamma_log, and √(1 - |λ|²)
/// takes the place of its exponential.
class LruImpl : public DiagonalLayer {
 public:
  explicit LruImpl(const LruOptions& options, uint64_t seed = 0, uint64_t stream = 0);

  System system() const override;
  ParameterGroup group(const std::string& parameter) const override;

  /// Takes over parameters, such as those of `to_lru`; sizes, direction and a learned γ must fit.
  void load(const LruParameters& parameters);

  const LruOptions& options() const { return options_; }
  void pretty_print(std::ostream& stream) const override;

  torch::Tensor nu_log, theta_log, gamma_log, B_re, B_im, C_re, C_im, C_reverse_re, C_reverse_im, D;

 private:
  LruOptions options_;
};
TORCH_MODULE(Lru);

}  // namespace rotrnn
