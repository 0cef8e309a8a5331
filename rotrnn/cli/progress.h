#pragma once

#include <string>

#include "rotrnn/training/trainer.h"

namespace rotrnn::cli {

/// Shows a run on standard error: a bar that moves on a terminal, plain lines otherwise.
class Progress {
 public:
  explicit Progress(bool quiet);
  void message(const std::string& text);
  /// Also when quiet.
  void warning(const std::string& text);
  void step(const StepReport& report);
  void evaluation(const EvaluationReport& report);
  /// Ends the bar's line.
  void finish();

 private:
  void clear();

  bool quiet_, terminal_;
  bool drawn_ = false;
  double last_shown_ = -1e9;
};

}  // namespace rotrnn::cli
