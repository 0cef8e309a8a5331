#pragma once

#include <cstddef>
#include <vector>

#include "rotrnn/kernels/block/plan.h"
#include "rotrnn/layers/layer.h"
#include "rotrnn/spec/description.h"

namespace rotrnn {

/// ‖x_t‖₂ of states z [rows, 2S] (real parts, then imaginary parts; `stride` numbers from a row to
/// the next), [rows, groups].
void diagonal_norms(const float* z, size_t stride, size_t rows, const LayerStates& states,
                    int threads, std::vector<float>& out);

/// Of all states of all channels, [rows], from the inputs u [rows, D]: the channel kernels keep no
/// states. std::invalid_argument for a convolution, which has none.
void channel_norms(const Channel<float>& layer, const kernels::PackedSequences& sequences,
                   const float* u, int threads, std::vector<float>& out);

}  // namespace rotrnn
