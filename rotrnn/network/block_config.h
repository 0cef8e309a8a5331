#pragma once

#include "rotrnn/kernels/block/block.h"
#include "rotrnn/network/network.h"
#include "rotrnn/spec/description.h"

namespace rotrnn {

/// Blocks with such a layer as the kernels take them: the only translation of ModelOptions.
template <class T>
kernels::BlockConfig block_config(const ModelOptions& options, const Description<T>& layer,
                                  Mode mode, const EngineOptions& engine) {
  kernels::BlockConfig config;
  config.D = static_cast<size_t>(options.width);
  if (const auto* diagonal = std::get_if<Diagonal<T>>(&layer)) {
    config.S = static_cast<size_t>(diagonal->states);
    config.bidirectional = diagonal->bidirectional();
  }
  config.activation = options.activation;
  config.norm = options.norm;
  config.prenorm = options.prenorm;
  config.batch_statistics = mode != Mode::evaluate;
  config.eps = kNormEpsilon;
  config.reduce = engine.reduce;
  return config;
}

}  // namespace rotrnn
