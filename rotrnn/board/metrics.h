#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rotrnn/board/series.h"

namespace rotrnn::board {

/// How often a class was taken for another: counts[true class][predicted class].
struct Confusion {
  int64_t step = 0;
  std::vector<std::string> classes;  // empty, or a name for each
  std::vector<std::vector<int64_t>> counts;
};

/// The eigenvalues at a moment: of every layer re, im, re, im, …
struct LambdaFrame {
  int64_t step = 0;
  std::vector<std::vector<float>> layers;
};

/// The content of metrics.jsonl of a run (docs/training.md), read line by line and kept in bounded
/// memory. A line whose step lies behind the last one is a run that went back: what it had written
/// from there on is forgotten.
class Metrics {
 public:
  /// Takes in a line; what is not an object with a step and a split is counted and left out.
  void add_line(std::string_view line);

  /// By name: split and field, such as "train.loss"; norms as "norms.whole.0" and so on.
  const std::map<std::string, Series>& series() const { return series_; }
  const std::deque<LambdaFrame>& lambda() const { return lambda_; }
  const std::map<std::string, Confusion>& confusion() const { return confusion_; }

  int64_t last_step() const { return last_step_; }  // -1: none yet
  int64_t lines() const { return lines_; }
  int64_t bad_lines() const { return bad_lines_; }
  /// Grows when something was forgotten that had been sent.
  uint64_t generation() const { return generation_; }
  /// Grows when eigenvalues or a confusion matrix came.
  uint64_t details() const { return details_; }

 private:
  void rewind(int64_t step);
  void keep(LambdaFrame frame);

  std::map<std::string, Series> series_;
  std::deque<LambdaFrame> lambda_;
  std::map<std::string, Confusion> confusion_;
  size_t lambda_numbers_ = 0, lambda_stride_ = 1, lambda_seen_ = 0;
  int64_t last_step_ = -1, lines_ = 0, bad_lines_ = 0;
  uint64_t generation_ = 0, details_ = 0;
};

}  // namespace rotrnn::board
