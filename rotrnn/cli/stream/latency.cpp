#include "rotrnn/cli/stream/latency.h"

#include <algorithm>
#include <cmath>

namespace rotrnn::cli {
namespace {

constexpr double kSmallest = 1e-9;

}  // namespace

void Latency::add(double seconds, int64_t times) {
  const double place = std::log2(std::max(seconds, kSmallest) / kSmallest) * kParts;
  count_ += times;
  total_ += seconds * static_cast<double>(times);
  largest_ = std::max(largest_, seconds);
  buckets_[std::min(static_cast<size_t>(place), buckets_.size() - 1)] += times;
}

double Latency::quantile(double share) const {
  const auto wanted = static_cast<int64_t>(std::ceil(share * static_cast<double>(count_)));
  int64_t seen = 0;
  for (size_t i = 0; i < buckets_.size(); ++i) {
    seen += buckets_[i];
    if (seen > 0 && seen >= wanted) {
      const double upper = kSmallest * std::exp2(static_cast<double>(i + 1) / kParts);
      return std::min(upper, largest_);
    }
  }
  return 0;
}

}  // namespace rotrnn::cli
