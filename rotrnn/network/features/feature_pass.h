#pragma once

#include <span>
#include <vector>

#include "rotrnn/network/batches/packed.h"
#include "rotrnn/network/options.h"
#include "rotrnn/network/weights.h"

namespace rotrnn {

/// Features of a bank of rotations and the head, of packed tokens of so many channels. It has no
/// backward pass: such networks are fitted.
class FeaturePass {
 public:
  struct Input {
    const ModelOptions& options;
    const Weights& weights;
    PackedInput batch;
    int64_t channels = 1, outputs = 1;
    int threads = 1;
  };

  /// The outputs [sequences, outputs], valid until the next call.
  std::span<const float> forward(const Input& input);

 private:
  std::vector<float> features_, y_;
};

}  // namespace rotrnn
