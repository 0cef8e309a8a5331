#pragma once

#include <algorithm>
#include <iterator>
#include <vector>

namespace rotrnn {

/// The lower of two in the middle; 0 for no values.
inline double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + (std::ssize(values) - 1) / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace rotrnn
