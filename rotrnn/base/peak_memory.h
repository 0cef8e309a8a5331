#pragma once

namespace rotrnn {

/// Measures how much memory this process takes at most while the object lives, in MB above what it
/// held at the start. Linux keeps one peak for a process, so one such object lives at a time.
class PeakMemory {
 public:
  PeakMemory();
  /// The increase so far; negative when the system does not report it.
  double increase_mb() const;

 private:
  double start_mb_;
};

}  // namespace rotrnn
