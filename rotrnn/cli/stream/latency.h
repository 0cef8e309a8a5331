#pragma once

#include <array>
#include <cstdint>

namespace rotrnn::cli {

/// Times of any number of events in constant memory: shares of them below a time are right to 3 %,
/// the largest is exact.
class Latency {
 public:
  /// `times` events that took this long each.
  void add(double seconds, int64_t times = 1);

  int64_t count() const { return count_; }
  double total() const { return total_; }  // seconds
  double largest() const { return largest_; }
  /// The time that this share of the events did not exceed; 0 when there are none.
  double quantile(double share) const;

 private:
  static constexpr int kParts = 24;      // of a doubling
  static constexpr int kDoublings = 40;  // from a nanosecond to 18 minutes
  std::array<int64_t, kParts * kDoublings> buckets_{};
  int64_t count_ = 0;
  double total_ = 0, largest_ = 0;
};

}  // namespace rotrnn::cli
