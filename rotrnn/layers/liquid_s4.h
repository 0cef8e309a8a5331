#pragma once

#include "rotrnn/layers/liquid_s4_options.h"
#include "rotrnn/layers/s4.h"

namespace rotrnn {

/// A Liquid-S4 layer as a stream runs it.
struct LiquidS4Steps {
  S4Steps s4;
  torch::Tensor coefficients;  // [degree - 1, D]
  LiquidForm form;
};

/// Liquid-S4 (Hasani et al. 2022): S4 with correlation terms, x_t = (Ā + diag(B̄)u_t)x_{t-1} + B̄u_t
/// taken apart by the number p = 2 … degree of inputs in a product.
///
///     b_n = ΔB_n/(1 - ΔΛ_n/2),    s = 2Re Σ_n b_n
///     pb: y_t += Σ_p c_p·Π_{j<p} u_{t-j}
///         coefficient "power":      c_p = 2Re Σ_n C_n b_n^p
///         coefficient "reference":  c_p = s^(2^(p-1) - 1)·2Re Σ_n C_n b_n
///         mode "reference", not causal: of the p-combinations of the last w inputs of a sequence
///         of T in lexicographic order the last T, w < T being the smallest number that has as
///         many; the t-th from the end joins y_t
///     kb: y_t += Σ_p s^(p-1) Σ_l K_l Π_{j<p} u_{t-l-j}
///
/// u is 0 before the start. Parameters and buffers are those of S4, but Im B is not clipped.
/// Bidirectional: the terms are those of the forward direction.
class LiquidS4Impl : public S4Impl {
 public:
  explicit LiquidS4Impl(const LiquidS4Options& options, uint64_t seed = 0, uint64_t stream = 0);

  /// c_p [degree - 1, D], from p = 2 on; in form kb s^(p-1).
  torch::Tensor coefficients() const;

  /// As S4 has them. z is that of S4, then the last degree - 1 inputs, the latest first.
  LiquidS4Steps steps() const;
  static StepOutput step(const LiquidS4Steps& steps, const torch::Tensor& z,
                         const torch::Tensor& u);

  ChannelRecurrence recurrence() const override;

  /// The causal form pb; the others run block by block.
  bool fusible() const override {
    return options_.form == LiquidForm::pb && options_.mode == LiquidMode::causal;
  }
  FusedChannels fused_channels(const Layout& layout, double* seconds = nullptr) const override;
  SystemOutput forward(const Packed& u, const States& initial = {},
                       bool fast = false) const override;

  const LiquidS4Options& options() const { return options_; }
  void pretty_print(std::ostream& stream) const override;

 private:
  /// Kernels and coefficients at once: they share their sums.
  struct Parts {
    torch::Tensor K, K_reverse, coefficients;
  };
  Parts parts(bool fast) const;
  void check_causal() const;

  LiquidS4Options options_;
};
TORCH_MODULE(LiquidS4);

}  // namespace rotrnn
