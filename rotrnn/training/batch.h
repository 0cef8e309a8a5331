#pragma once

#include <torch/torch.h>

#include <span>
#include <vector>

#include "rotrnn/data/task.h"
#include "rotrnn/layers/packed.h"

namespace rotrnn {

/// Sequences as a network takes them, with what it should say about them.
struct Batch {
  Packed input;
  torch::Tensor targets;           // undefined when it was asked for without
  std::vector<int64_t> sequences;  // their numbers, for dropout

  /// How many things are to be told: sequences or examples, or steps.
  int64_t told() const { return targets.size(0); }
};

/// The examples of these numbers as one packed batch.
Batch make_batch(const Examples& examples, const DataShape& shape, std::span<const int64_t> numbers,
                 bool with_targets = true);

}  // namespace rotrnn
