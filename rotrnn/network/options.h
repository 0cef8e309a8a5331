#pragma once

#include <cstdint>

#include "rotrnn/layers/layer_options.h"

namespace rotrnn {

/// The formulas are in docs/layers.md; exact_glu is that of the S4 family.
enum class Activation { half_glu1, full_glu, half_glu2, gelu, exact_glu };

/// Whether the activation has a value branch W1 besides the gate W2.
constexpr bool has_value(Activation a) {
  return a == Activation::full_glu || a == Activation::exact_glu;
}
/// Whether it has a gate W2.
constexpr bool has_gate(Activation a) {
  return a != Activation::gelu;
}
enum class NormKind { batch, layer };
enum class Pooling { mean, last, none };

/// Added to variances.
inline constexpr double kNormEpsilon = 1e-5;

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
