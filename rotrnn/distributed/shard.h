#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace rotrnn {

/// The part of a whole that one of `size` processes works on.
struct Shard {
  int rank = 0, size = 1;
};

/// Which of `lengths` a process takes, in their order: all processes get nearly the same number of
/// tokens, and at least one sequence each when there are as many sequences as processes. A pure
/// function of the lengths.
std::vector<int64_t> take_shard(std::span<const int64_t> lengths, const Shard& shard);

}  // namespace rotrnn
