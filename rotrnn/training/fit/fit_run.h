#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "rotrnn/fit/fit.h"
#include "rotrnn/training/config/config.h"
#include "rotrnn/training/evaluate/evaluate.h"

namespace rotrnn {

/// What is tried in front of the bank.
enum class FitInput { automatic, samples, bands };

/// A fit of a config's task. The seed is training.seed, the states model.features.states.
struct FitRequest {
  Config config;
  std::filesystem::path out;  // run folder; empty: nothing is written
  FitInput input = FitInput::automatic;
  bool balance = true;    // uneven classes count the same
  bool prefixes = false;  // learn from the beginnings of the series too, for early answers
  std::function<void(const std::string&)> message;  // may be empty
};

/// What was tried, by the estimate that chose.
struct FitTrial {
  std::string name;  // "samples", "bands"
  fit::Estimate estimate;
  double seconds = 0;
};

/// The network at a share of the length of the test series.
struct EarlyAnswers {
  double share = 1;
  fit::Mean accuracy;      // classes
  double calibration = 0;  // classes: calibration_error of the probabilities
  double mean_square = 0;  // values, in units of their deviation
};

struct FitOutcome {
  Config config;  // with what was chosen
  std::vector<std::string> classes;
  std::vector<FitTrial> trials;  // the chosen one first
  fit::Estimate estimate;
  double penalty = 0, temperature = 1;
  int64_t train = 0, parameters = 0;
  Scores validation, test;  // 0 examples: there are none
  Majority majority;
  std::vector<EarlyAnswers> early;
  double fit_seconds = 0;  // from the examples in memory to the fitted network
  double seconds = 0;      // with reading and evaluation
  double peak_memory_mb = 0;
};

/// Fits and evaluates, and writes the run: like one of `train`, but it cannot be resumed.
FitOutcome fit_run(const FitRequest& request);

}  // namespace rotrnn
