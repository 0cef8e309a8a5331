#pragma once

#include <span>
#include <vector>

#include "rotrnn/layers/layer.h"

/// The paper's states x of a RotRNN layer, [count, N], and the z = Pᵀx that the engine runs,
/// [count, 2S] (real parts, then imaginary parts; those of an odd head's last coordinate are 0).
namespace rotrnn {

/// P_h = expm(M_h - M_hᵀ) of all heads, [H, dh, dh].
std::vector<double> rotrnn_rotations(const LayerOptions& options, const LayerValues& values);

/// x = P z.
std::vector<double> rotrnn_hidden(const LayerOptions& options, const LayerValues& values,
                                  std::span<const double> z);

/// z = Pᵀx: the state to begin with.
std::vector<double> rotrnn_folded(const LayerOptions& options, const LayerValues& values,
                                  std::span<const double> x);

}  // namespace rotrnn
