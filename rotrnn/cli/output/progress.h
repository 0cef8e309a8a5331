#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rotrnn/training/trainer.h"

namespace rotrnn::cli {

/// A curve of any length in a bounded number of values: when there are too many, neighbours become
/// their mean.
class Curve {
 public:
  void add(double value);
  /// The values so far, the one that is being gathered included.
  std::vector<double> values() const;

 private:
  std::vector<double> values_;
  double sum_ = 0;
  int64_t gathered_ = 0, each_ = 1;  // values of a point
};

/// Shows a run on standard error: on a terminal one line that is updated, with the curves of loss
/// and score; plain lines otherwise, and on a terminal that can do no better (TERM=dumb).
class Progress {
 public:
  explicit Progress(bool quiet);
  /// Removes the updated line, so that an error does not follow it.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  void message(const std::string& text);
  /// Also when quiet.
  void warning(const std::string& text);
  void step(const StepReport& report);
  void evaluation(const EvaluationReport& report);
  /// Ends the updated line; on a terminal the curves of the whole run stay.
  void finish();

 private:
  void clear();
  void draw(const StepReport& report);

  bool quiet_, terminal_, colour_;
  bool drawn_ = false;
  double last_shown_ = -1e9;
  int64_t last_step_ = 0;
  Curve losses_;
  std::vector<double> scores_;  // accuracies, or losses of values, on validation
  bool accuracies_ = false;
};

}  // namespace rotrnn::cli
