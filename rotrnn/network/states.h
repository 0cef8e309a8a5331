#pragma once

#include "rotrnn/layers/layer_options.h"
#include "rotrnn/network/engine.h"

namespace rotrnn {

/// The states of a layer before the first or after the last tokens, [sequences, state_size()]: real
/// parts, then imaginary parts. Of a layer whose channels do not meet each part is [N, D].
template <class T>
struct BlockStates {
  T *forward = nullptr, *reverse = nullptr;  // null: zero, or not wanted
};

/// Numbers per sequence in the states of a layer; 0 for one that shows none.
size_t state_size(const LayerOptions& options);

/// std::invalid_argument when the layer cannot begin with such states or give them.
void check_states(const LayerOptions& options, const EngineOptions& engine,
                  const BlockStates<const float>& initial, const BlockStates<float>& final);

}  // namespace rotrnn
