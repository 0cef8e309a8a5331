#pragma once

#include "rotrnn/layers/lru/load.h"

namespace rotrnn {

/// The LRU that computes the same as a RotRNN layer; its states share γ within a head. load_lru()
/// gives the parameters to a layer.
///
///     λ = exp(-e^{nu_log} + i·e^{theta_log}) is that of the RotRNN,   gamma_log = ½·log(1 - |λ|²),
///     B = W/√(1 - |λ|²),   C = V
///
/// std::invalid_argument for what an LRU cannot express: a stationary start, or |λ| of 1 or more.
LruParameters to_lru(const LayerOptions& options, const LayerValues& values);

}  // namespace rotrnn
