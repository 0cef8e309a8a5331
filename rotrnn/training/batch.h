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

  // As part of a step, whose other parts may be computed later or by other processes.
  double share = 1;       // of the step's loss
  bool stand_in = false;  // there is nothing for this process: of no weight, only to keep step
  int64_t tokens = 0;     // of this part in all processes
  std::vector<int64_t> examples{};  // the same, their numbers

  /// How many things are to be told: sequences or examples, or steps.
  int64_t told() const { return targets.size(0); }
};

/// The examples of these numbers as one packed batch.
Batch make_batch(const Examples& examples, const DataShape& shape, std::span<const int64_t> numbers,
                 bool with_targets = true);

}  // namespace rotrnn
