#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "rotrnn/distributed/group.h"
#include "rotrnn/training/config/config.h"
#include "rotrnn/training/evaluate/evaluate.h"

namespace rotrnn {

/// One step, for the observer.
struct StepReport {
  int64_t step = 0, steps = 0;
  double loss = 0;
  double tokens_per_second = 0;  // over the last few steps
  double seconds_left = 0;
  int64_t skipped = 0;  // steps so far that were not finite
};

/// One evaluation, for the observer.
struct EvaluationReport {
  int64_t step = 0;
  Scores scores;
  bool best = false;
};

/// Called while training; each may be empty.
struct TrainObserver {
  std::function<void(const std::string&)> message;
  std::function<void(const StepReport&)> step;
  std::function<void(const EvaluationReport&)> evaluation;
  std::function<bool()> stop;                       // asked after every step; true: save and return
  std::function<void(const std::string&)> warning;  // what a user must know
};

/// A run to start or to continue.
struct TrainRequest {
  Config config;
  std::filesystem::path out;
  bool resume = false;              // continue from the newest checkpoint that is whole
  std::filesystem::path init_from;  // empty, or a run whose weights are the initial ones
  // Processes that compute each step together; none: this one alone. All must request the same, but
  // only rank 0 writes files and calls the observer; any of them may ask to stop.
  Group* group = nullptr;
};

/// How a run ended.
struct TrainOutcome {
  bool finished = false;  // false: stopped on request, saved
  int64_t step = 0;
  int64_t best_step = -1;
  double best_score = 0;
  Scores test;
  Majority majority;                 // of classes
  std::vector<std::string> classes;  // their names
  int64_t parameters = 0;
  int64_t skipped = 0;  // steps that were not finite
  double seconds = 0;
  double peak_memory_mb = 0;  // above what data and weights took before the first step
};

/// Trains to the end, or until asked to stop; evaluates the best weights on the test split.
///
/// Two runs of one config and thread count write the same weights and metrics, and so does a run
/// that was killed and resumed; a group computes what one process would, to rounding. A step whose
/// loss or gradient is not finite is skipped; too many in a row end in a std::runtime_error, with
/// the last good checkpoint as it was.
TrainOutcome train(const TrainRequest& request, const TrainObserver& observer);

/// What the parts of a run take, in seconds.
struct RunTiming {
  double setup = 0;       // data and weights
  double step = 0;        // one training step, on average
  double validation = 0;  // one evaluation
  double test = 0;        // the evaluation at the end
  int64_t steps = 0;      // that were timed
};

/// Times a run by its own config and data: a few steps, for about `seconds`, and one evaluation.
/// Nothing is written. `stop` is asked after every step; true gives a timing of 0 steps.
RunTiming time_run(const Config& config, double seconds, const std::function<bool()>& stop);

}  // namespace rotrnn
