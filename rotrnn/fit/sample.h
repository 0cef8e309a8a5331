#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "rotrnn/base/random.h"

namespace rotrnn::fit {

/// The first `most` of a random order of 0 … n - 1, by the seed alone.
inline std::vector<size_t> random_order(size_t n, size_t most, uint64_t seed) {
  Random random(seed, RandomSite::fit);
  std::vector<size_t> order(n);
  std::iota(order.begin(), order.end(), size_t{0});
  const size_t wanted = std::min(n, most);
  for (size_t i = 0; i < wanted; ++i) {
    std::swap(order[i], order[i + random.below(static_cast<uint32_t>(n - i))]);
  }
  order.resize(wanted);
  return order;
}

}  // namespace rotrnn::fit
