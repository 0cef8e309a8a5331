#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "rotrnn/training/checkpoint/checkpoint.h"

namespace rotrnn {

/// How well a network does on a set of examples.
struct Scores {
  double loss = 0;
  int64_t examples = 0;
  bool classes = true;  // targets are classes, not values
  double accuracy = 0;
  std::vector<int64_t> confusion;  // [true class, predicted class], row by row
  // Values: mean absolute and mean square error, and those of the naive prediction, the mean of the
  // training targets or the last value. A forecast is in units of a channel's standard deviation,
  // all else in the data's own.
  double mae = 0, mse = 0, naive_mae = 0, naive_mse = 0;

  /// What is best when it is largest.
  double score() const { return classes ? accuracy : -loss; }
};

/// How well a class is predicted.
struct ClassScore {
  double precision = 0, recall = 0, f1 = 0;  // 0 where undefined
  int64_t examples = 0, predicted = 0;
};

/// The scores of every class, from the confusion matrix.
std::vector<ClassScore> class_scores(const Scores& scores);

/// What `rotrnn eval` reports.
struct Evaluation {
  Scores scores;
  Majority majority;       // the most frequent label of the same split
  int64_t step = 0;        // of the checkpoint
  std::string checkpoint;  // its folder in the run: best, last, step-20
  std::vector<std::string> classes;
  std::vector<std::string> messages;  // about the data
};

/// What to evaluate.
struct EvaluationRequest {
  std::filesystem::path run;
  Which which = Which::best;
  std::string split = "test";  // or "train", "validation"
  std::string data_path;       // replaces task.path when it is not empty
  int64_t keep_every = 1;      // of the steps; above 1, the layer must have a time step to rescale
  EngineOptions engine;
};

/// Evaluates a run with the preprocessing it was trained with.
Evaluation evaluate_run(const EvaluationRequest& request);

}  // namespace rotrnn
