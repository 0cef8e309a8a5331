#pragma once

#include <chrono>

namespace rotrnn::kernels {

/// Adds the seconds of its life to a number; does nothing without one.
class Stopwatch {
 public:
  explicit Stopwatch(double* seconds) : seconds_(seconds) {
    if (seconds_) begin_ = std::chrono::steady_clock::now();
  }
  ~Stopwatch() {
    if (!seconds_) return;
    *seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  double* seconds_;
  std::chrono::steady_clock::time_point begin_;
};

}  // namespace rotrnn::kernels
