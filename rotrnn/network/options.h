#pragma once

#include <cstdint>

#include "rotrnn/layers/layer_options.h"
#include "rotrnn/spec/features.h"
#include "rotrnn/spec/frontend.h"
#include "rotrnn/spec/kinds.h"

namespace rotrnn {

/// Added to variances.
inline constexpr double kNormEpsilon = 1e-5;

/// Front end → encoder → depth × block → pooling → head: the settings of [model] and [frontend] in
/// a config.
struct ModelOptions : LayerOptions {
  Body body = Body::blocks;
  FeatureOptions features;  // of body features, which has no layers
  int64_t depth = 6;
  Activation activation = Activation::half_glu1;
  Norm norm = Norm::batch;
  double norm_momentum = 0.95;  // running ← momentum·running + (1 - momentum)·batch
  bool prenorm = true;
  double dropout = 0;
  Pooling pooling = Pooling::mean;
  FrontendOptions frontend;
};

}  // namespace rotrnn
