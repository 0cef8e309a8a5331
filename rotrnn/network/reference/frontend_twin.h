#pragma once

#include <vector>

#include "rotrnn/network/batches/packed.h"
#include "rotrnn/network/weights.h"
#include "rotrnn/spec/frontend.h"

namespace rotrnn {

/// The front end by the plain twins, in T: tokens of packed samples, and the way back.
template <class T>
class FrontendTwin {
 public:
  using Values = std::vector<T>;

  /// Options are resolved. Without a front end the samples are the tokens.
  void forward(const FrontendOptions& options, size_t channels, const Weights& weights,
               const PackedInput& batch);

  const std::vector<int64_t>& offsets() const { return offsets_; }
  const Values& values() const { return values_; }
  size_t channels() const { return channels_; }

  /// The gradient of the samples, from that of the tokens; adds those of trained parameters to
  /// `out`, in the layout of the weights.
  Values backward(const Weights& weights, const Values& dtokens, Values& out) const;

 private:
  FrontendOptions options_;
  PackedInput batch_;
  std::vector<int64_t> offsets_;
  Values values_;
  size_t inputs_ = 0, channels_ = 0;
};

}  // namespace rotrnn
