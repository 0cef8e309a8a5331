#pragma once

#include "rotrnn/layers/channel.h"

namespace rotrnn {

/// run_channels by the SIMD kernel: float32 on the CPU, LibTorch's number of threads,
/// differentiable once, nothing kept but its input. States z of every token are not given, and a
/// reverse initial state is not taken.
SystemOutput run_channels_fused(const ChannelSystem& system, const Packed& u,
                                const States& initial = {});

}  // namespace rotrnn
