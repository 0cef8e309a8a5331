#pragma once

#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "rotrnn/base/random.h"

namespace rotrnn {

/// The numbers 0 … n - 1 in a random order (Fisher-Yates); n is below 2^32.
inline std::vector<int64_t> shuffled(int64_t n, Random random) {
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  for (int64_t i = n - 1; i > 0; --i) {
    std::swap(order[i], order[random.below(static_cast<uint32_t>(i + 1))]);
  }
  return order;
}

}  // namespace rotrnn
