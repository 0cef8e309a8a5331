#pragma once

#include <cstdint>

#include "rotrnn/kernels/block.h"

namespace rotrnn {

/// Which code does the sequence work.
enum class Kernels {
  fused,      // the fused kernels: float32 on the CPU; any other network falls back to reference
  reference,  // ATen operations, on any device
};

/// What forward keeps for backward: all that is dear to recompute, or as little as can be.
enum class MemoryMode { normal, low };

/// How a network computes; the results are the same to rounding.
struct EngineOptions {
  Kernels kernels = Kernels::fused;
  MemoryMode memory = MemoryMode::normal;
  int threads = 0;                       // 0: as many as the process may use
  kernels::StageTimes* times = nullptr;  // seconds per stage are added to it, when given
};

}  // namespace rotrnn
