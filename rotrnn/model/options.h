#pragma once

#include <cstdint>
#include <string>

#include "rotrnn/layers/rotrnn_options.h"

namespace rotrnn {

enum class Activation { half_glu1, full_glu, half_glu2, gelu };
enum class NormKind { batch, layer };
enum class Pooling { mean, last, none };

/// Encoder → depth × block → pooling → head: the settings of [model] in a config.
struct ModelOptions {
  std::string layer = "rotrnn";
  int64_t width = 128;
  int64_t state = 256;
  int64_t heads = 32;
  int64_t depth = 6;
  Activation activation = Activation::half_glu1;
  NormKind norm = NormKind::batch;
  double norm_momentum = 0.95;  // running ← momentum·running + (1 - momentum)·batch
  bool prenorm = true;
  double dropout = 0;
  bool bidirectional = false;
  Pooling pooling = Pooling::mean;
  Normalisation normalisation = Normalisation::xi;
  double c = 1;
  bool stationary_start = false;
  InitOptions init;

  /// The part that a layer needs to know.
  RotRNNOptions layer_options() const {
    return {width, state, heads, bidirectional, normalisation, c, stationary_start, init};
  }
};

}  // namespace rotrnn
