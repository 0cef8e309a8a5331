#pragma once

#include <cstdint>

#include "rotrnn/layers/layer_options.h"

namespace rotrnn {

enum class Activation { half_glu1, full_glu, half_glu2, gelu };
enum class NormKind { batch, layer };
enum class Pooling { mean, last, none };

/// Encoder → depth × block → pooling → head: the settings of [model] in a config.
struct ModelOptions : LayerOptions {
  int64_t depth = 6;
  Activation activation = Activation::half_glu1;
  NormKind norm = NormKind::batch;
  double norm_momentum = 0.95;  // running ← momentum·running + (1 - momentum)·batch
  bool prenorm = true;
  double dropout = 0;
  Pooling pooling = Pooling::mean;
};

}  // namespace rotrnn
