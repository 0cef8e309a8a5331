#pragma once

#include <cstdint>

#include "rotrnn/base/enum_names.h"

namespace rotrnn {

/// What stands between the input and the head of a network.
enum class Body {
  blocks,    // encoder, blocks, pooling
  features,  // a bank of fixed rotations and counting features; fitted, not trained
};

template <>
inline constexpr std::array kNames<Body>{"blocks", "features"};

/// The settings of [model.features] in a config: the bank of a fitted network.
struct FeatureOptions {
  int64_t states = 1024;    // a multiple of 16
  int64_t taps = 0;         // inputs that a state reads; 0: chosen by rotrnn fit
  bool differences = true;  // first differences of the channels are inputs too
};

}  // namespace rotrnn
