#include "rotrnn/network/states.h"

#include <fmt/format.h>

#include <stdexcept>

#include "rotrnn/layers/layer_table.h"

namespace rotrnn {

size_t state_size(const LayerOptions& options) {
  return 2 * static_cast<size_t>(layer_kind(options.layer).states(options).count);
}

void check_states(const LayerOptions& options, const EngineOptions& engine,
                  const BlockStates<const float>& initial, const BlockStates<float>& final) {
  const bool reverse = initial.reverse != nullptr || final.reverse != nullptr;
  const bool forward = initial.forward != nullptr || final.forward != nullptr;
  if (!forward && !reverse) return;
  if (state_size(options) == 0) {
    throw std::invalid_argument(fmt::format(
        "states: {} runs as a convolution, which neither begins with a state nor shows one",
        options.layer));
  }
  if (reverse && !options.bidirectional) {
    throw std::invalid_argument("states: this layer runs forward only and has no reverse state");
  }
  if (reverse && layer_kind(options.layer).channels && engine.kernels == Kernels::fused) {
    throw std::invalid_argument(fmt::format(
        "states: the fused kernels of {} have no reverse state; use the reference kernels",
        options.layer));
  }
}

}  // namespace rotrnn
