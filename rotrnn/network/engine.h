#pragma once

#include <cstdint>

#include "rotrnn/base/enum_names.h"
#include "rotrnn/kernels/block/block.h"

namespace rotrnn {

/// Which code does the sequence work.
enum class Kernels {
  fused,      // the fused kernels, in float32
  reference,  // their plain twins, in double: slow, to compare with
};
template <>
inline constexpr std::array kNames<Kernels>{"fused", "reference"};

/// What forward keeps for backward: all that is expensive to recompute, or as little as can be.
enum class MemoryMode { normal, low };
template <>
inline constexpr std::array kNames<MemoryMode>{"normal", "low"};

/// Where the time of a step goes, for benchmarks.
struct EngineTimes {
  kernels::StageTimes stages;  // inside the blocks, summed over threads
  double blocks = 0;           // wall time of all blocks, forward and backward
  double map = 0;              // wall time of the parameter maps, forward and backward
};

/// How a network computes; the results are the same to rounding.
struct EngineOptions {
  Kernels kernels = Kernels::fused;
  MemoryMode memory = MemoryMode::normal;
  int threads = 0;               // 0: as many as the process may use
  EngineTimes* times = nullptr;  // added to, when given
  // Sums over the processes that share a batch, for the statistics of batch norm; empty: there is
  // one process.
  kernels::Reduce reduce;
};

}  // namespace rotrnn
