#pragma once

#include <span>
#include <vector>

#include "rotrnn/data/task.h"
#include "rotrnn/network/losses.h"
#include "rotrnn/network/network.h"

namespace rotrnn {

/// Sequences as a network takes them, with their targets.
struct Batch {
  std::vector<int64_t> offsets{0};
  std::vector<int64_t> tokens;  // or
  std::vector<float> values;
  std::vector<int64_t> classes;      // targets: classes, or
  std::vector<float> target_values;  // values; empty when they were not requested
  std::vector<int64_t> sequences;    // their numbers, for dropout
  size_t rows = 0;                   // of the network's output

  // As part of a step, whose other parts may be computed later or by other processes.
  double share = 1;                 // of the step's loss
  bool placeholder = false;         // a rank without examples of this part takes part with weight 0
  int64_t step_tokens = 0;          // of this part in all processes
  std::vector<int64_t> examples{};  // the same, their numbers

  PackedInput input() const { return {offsets, tokens, values}; }
  Targets targets() const { return {rows, classes.data(), target_values.data(), nullptr}; }
  int64_t length() const { return offsets.back(); }
};

/// The examples of these numbers as one packed batch.
Batch make_batch(const Examples& examples, const DataShape& shape, std::span<const int64_t> numbers,
                 bool with_targets = true);

/// Forward, loss and backward over one batch: the loss times the batch's share of its step, and the
/// gradient of that, overwritten. `dy` is memory for reuse.
double train_pass(Network& network, Workspace& workspace, const Batch& batch,
                  const DropoutKey& dropout, const LossOptions& loss, FlatArray& gradients,
                  std::vector<float>& dy);

/// Noise in the shape of a task's data, for measurements: sequences of these lengths.
Batch make_noise(const DataShape& shape, const std::vector<int64_t>& lengths);

}  // namespace rotrnn
