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
  torch::Tensor targets;
  std::vector<int64_t> sequences;  // numbers of the examples
};

/// The examples of these numbers as one packed batch.
Batch make_batch(const Examples& examples, const DataShape& shape,
                 std::span<const int64_t> numbers);

}  // namespace rotrnn
