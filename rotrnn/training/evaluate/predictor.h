#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "rotrnn/training/checkpoint/checkpoint.h"

namespace rotrnn {

/// What a network predicts for one input.
struct Prediction {
  int64_t label = 0;                  // of the sequence
  std::vector<double> probabilities;  // one per class
  std::vector<double> values;         // or, in the data's units, the targets or the next steps
  std::vector<int64_t> labels;        // or one label per step
};

/// A trained network ready for use, from a run folder alone.
class Predictor {
 public:
  Predictor(const std::filesystem::path& run, Which which, const EngineOptions& engine);
  ~Predictor();

  /// Predicts for the examples of these numbers, all in one batch.
  std::vector<Prediction> predict(const Examples& examples, std::span<const int64_t> numbers);

  const CheckpointHeader& header() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rotrnn
