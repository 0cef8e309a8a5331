#pragma once

#include <cstdint>
#include <string>

#include "rotrnn/layers/liquid_s4/options.h"
#include "rotrnn/layers/lru/options.h"
#include "rotrnn/layers/rotrnn/options.h"
#include "rotrnn/layers/s4/options.h"
#include "rotrnn/layers/s4d/options.h"
#include "rotrnn/layers/s5/options.h"

namespace rotrnn {

/// Which layer, the sizes that all layers share, and the settings of each: a config may hold them
/// all, for comparing, and `layer` names the one to make.
struct LayerOptions {
  std::string layer = "rotrnn";  // a name of the table in layer_table.h
  int64_t width = 128;           // D
  int64_t state = 256;           // N: real dimensions, of every channel in the S4 family
  bool bidirectional = false;

  RotRNNOptions rotrnn;
  LruOptions lru;
  S5Options s5;
  S4DOptions s4d;
  S4Options s4;  // of Liquid-S4 too
  LiquidS4Options liquid_s4;

  /// Complex states, of layers whose eigenvalues come in conjugate pairs.
  int64_t complex_states() const { return state / 2; }
};

}  // namespace rotrnn
