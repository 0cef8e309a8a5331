#include "rotrnn/network/reference/feature_twin.h"

#include "rotrnn/kernels/oracle/bank_reference.h"
#include "rotrnn/network/features/feature_tensors.h"
#include "rotrnn/network/reference/frontend_twin.h"

namespace rotrnn {

std::vector<double> feature_twin(const ModelOptions& options, const DataShape& shape,
                                 const Weights& weights, const PackedInput& batch) {
  FrontendTwin<double> tokens;
  tokens.forward(options.frontend, static_cast<size_t>(shape.inputs), weights, batch);
  const std::vector<float> values(tokens.values().begin(), tokens.values().end());
  const kernels::FeatureBank bank =
      feature_bank(options, static_cast<int64_t>(tokens.channels()), weights);
  const std::span<const float> weight = weights.find("head.weight");
  const std::span<const float> bias = weights.find("head.bias");
  std::vector<double> y;
  for (size_t i = 0; i + 1 < tokens.offsets().size(); ++i) {
    const auto first = static_cast<size_t>(tokens.offsets()[i]);
    const auto last = static_cast<size_t>(tokens.offsets()[i + 1]);
    const kernels::BankSequence x{values.data() + first * bank.channels, last - first};
    const std::vector<double> features = kernels::reference::bank_features<double>(bank.view(), x);
    for (size_t k = 0; k < bias.size(); ++k) {
      double sum = bias[k];
      for (size_t f = 0; f < features.size(); ++f) {
        sum += static_cast<double>(weight[k * features.size() + f]) * features[f];
      }
      y.push_back(sum);
    }
  }
  return y;
}

}  // namespace rotrnn
