#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "rotrnn/network/network.h"
#include "rotrnn/training/batch.h"
#include "rotrnn/training/optimiser.h"

namespace rotrnn {

/// What was wrong with a step whose loss or gradient was not finite.
struct NonFinite {
  int64_t step = 0;
  double loss = 0, gradient_norm = 0;
  std::string parameter;          // the first whose gradient is not finite; empty: there is none
  bool in_weights = false;        // the parameter itself is not, so no later step can be better
  std::vector<int64_t> examples;  // numbers of the batch, of all processes
};

/// Undoes a step that is not finite. Parameters and moments need no guard, since the optimiser is
/// not called; running statistics of batch norm have moved by the forward pass, so the buffers are
/// copied before every step.
class StepGuard {
 public:
  explicit StepGuard(Weights& weights) : weights_(weights) {}

  /// Before a step.
  void remember();
  /// Puts back what the step has moved.
  void undo();
  /// Whether the statistics are finite. A variance can overflow while the loss is a number.
  bool finite() const;
  /// The first that is not, by name.
  std::string non_finite() const;

 private:
  Weights& weights_;
  std::vector<float> copy_;
};

/// Finds out what was wrong, from the weights, the gradients, the statistics and the batch of the
/// step, before undo().
NonFinite find_non_finite(const Weights& weights, const Optimiser& optimiser,
                          const FlatArray& gradients, const StepGuard& guard,
                          const std::vector<Batch>& parts);

/// For metrics.jsonl, where a number that is not finite is a text; and in a line for people, with
/// the names of the first examples.
nlohmann::ordered_json to_json(const NonFinite& found);
std::string describe(const NonFinite& found, const Examples& examples);

/// The first parameter with a value or moment that is not finite; empty: all are.
std::string non_finite_parameter(const Weights& weights, const Optimiser& optimiser);

}  // namespace rotrnn
