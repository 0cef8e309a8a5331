#include "rotrnn/network/batches/packed.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace rotrnn {

void check_offsets(std::span<const int64_t> offsets) {
  if (offsets.empty() || offsets[0] != 0) {
    throw std::invalid_argument("packed batch: offsets must begin with 0");
  }
  for (size_t i = 0; i + 1 < offsets.size(); ++i) {
    if (offsets[i + 1] <= offsets[i]) {
      throw std::invalid_argument(
          fmt::format("packed batch: sequence {} has {} tokens; each needs at least one", i,
                      offsets[i + 1] - offsets[i]));
    }
  }
}

int64_t longest_of(std::span<const int64_t> offsets) {
  int64_t longest = 0;
  for (size_t i = 0; i + 1 < offsets.size(); ++i) {
    longest = std::max(longest, offsets[i + 1] - offsets[i]);
  }
  return longest;
}

}  // namespace rotrnn
