#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "rotrnn/kernels/features/bank.h"

namespace rotrnn::kernels {

/// A bank with its numbers: γ = exp(-exp(gamma_log)), λ = γ·e^{iθ}.
struct FeatureBank {
  size_t channels = 0;
  bool differences = false;
  size_t taps = 1;
  std::vector<int32_t> inputs;          // [groups, taps]
  std::vector<float> drive;             // [groups, taps, 2, kBankStates]
  std::vector<float> theta, gamma_log;  // [states]
  std::vector<float> thresholds;        // [kBankThresholds, states]
  std::vector<float> lambda;            // [2, states]

  size_t states() const { return theta.size(); }
  size_t features() const { return (kBankThresholds + 1) * states(); }

  /// Computes λ, in double.
  void prepare();
  Bank view() const;
};

}  // namespace rotrnn::kernels
