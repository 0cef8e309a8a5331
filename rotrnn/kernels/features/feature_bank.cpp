#include "rotrnn/kernels/features/feature_bank.h"

#include <cmath>

namespace rotrnn::kernels {

void FeatureBank::prepare() {
  const size_t S = states();
  lambda.resize(2 * S);
  for (size_t s = 0; s < S; ++s) {
    const double gamma = std::exp(-std::exp(static_cast<double>(gamma_log[s])));
    lambda[s] = static_cast<float>(gamma * std::cos(static_cast<double>(theta[s])));
    lambda[S + s] = static_cast<float>(gamma * std::sin(static_cast<double>(theta[s])));
  }
}

Bank FeatureBank::view() const {
  return {.channels = channels,
          .differences = differences,
          .groups = states() / kBankStates,
          .taps = taps,
          .inputs = inputs.data(),
          .weights = drive.data(),
          .lambda = lambda.data(),
          .thresholds = thresholds.data()};
}

}  // namespace rotrnn::kernels
