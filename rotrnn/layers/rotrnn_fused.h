#pragma once

#include "rotrnn/layers/rotrnn.h"

namespace rotrnn {

/// The fused twin of RotRNN::system(), for layers of equal options: the same map by batched kernels
/// with their own derivative, computed in double, handed out in float32. For float32 layers on the
/// CPU. `seconds`, when given, is added the wall time of forward and backward.
std::vector<System> fused_systems(const std::vector<const RotRNNImpl*>& layers, int threads,
                                  double* seconds = nullptr);

}  // namespace rotrnn
