#pragma once

#include "rotrnn/layers/dplr.h"

namespace rotrnn {

/// `dplr_spectrum` on the CPU by kernels of its own (kernels/dplr.h), in double too: the sums are a
/// tenth of the work of the convolution that follows, and float would lose digits where a frequency
/// meets an eigenvalue.
torch::Tensor fused_spectrum(const Dplr& system, const DplrPorts& ports, int64_t length);

}  // namespace rotrnn
