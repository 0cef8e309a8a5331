#pragma once

#include <cstddef>
#include <vector>

namespace rotrnn::board {

/// A line of points, thinned for the screen.
struct Decimated {
  std::vector<double> step, value;
  // Where points were left out: means of the pieces, to smooth. Else empty, the points will do.
  std::vector<double> mean_step, mean;
};

/// A quantity over training: points with growing steps, in bounded memory. Beyond `most` points
/// pieces of four give way to their smallest and largest, so extremes stay for ever.
class Series {
 public:
  static constexpr size_t kMost = 1 << 17;

  explicit Series(size_t most = kMost) : most_(most) {}

  /// Adds a point; what was there at this step or after it gives way.
  void add(double step, double value);

  /// Forgets the points at `step` and after it.
  void rewind(double step);

  size_t size() const { return step_.size(); }
  const std::vector<double>& step() const { return step_; }
  const std::vector<double>& value() const { return value_; }

  /// The points with from <= step <= to and one on either side, as they are when there are at most
  /// `count`. Else they are cut into count / 2 pieces of equal numbers, and of each the smallest
  /// and the largest stay; the first and the last point stay in any case.
  Decimated decimate(double from, double to, size_t count) const;

 private:
  void thin();

  size_t most_;
  std::vector<double> step_, value_;
};

}  // namespace rotrnn::board
