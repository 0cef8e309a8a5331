#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "rotrnn/training/checkpoint.h"

namespace rotrnn {

/// What a network says about one input.
struct Prediction {
  int64_t label = 0;
  std::vector<double> probabilities;  // one a class
};

/// A trained network ready for use, from a run folder alone.
class Predictor {
 public:
  Predictor(const std::filesystem::path& run, Which which, const EngineOptions& engine);
  ~Predictor();

  /// Predicts for inputs given as text, all in one batch; std::invalid_argument for text that the
  /// task cannot read.
  std::vector<Prediction> predict(const std::vector<std::string>& texts);

  /// Predicts for the examples of these numbers, all in one batch.
  std::vector<Prediction> predict(const Examples& examples, std::span<const int64_t> numbers);

  const CheckpointHeader& header() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rotrnn
