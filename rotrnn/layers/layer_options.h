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

/// Which layer, its sizes, and the settings of every layer there is: a config may hold them all,
/// for comparing, and the one that `layer` names is made.
struct LayerOptions {
  std::string layer = "rotrnn";  // a name of the table in layer_table.h
  int64_t width = 128;           // D
  int64_t state = 256;           // N: real dimensions
  int64_t heads = 32;            // RotRNN
  bool bidirectional = false;
  Normalisation normalisation = Normalisation::xi;  // RotRNN, as the next four
  double c = 1;
  bool stationary_start = false;
  bool learn_rotation = true;
  InitOptions init;
  LruOptions lru;  // sizes and direction in these are replaced by the ones above
  S5Options s5;
  S4DOptions s4d;
  S4Options s4;
  LiquidS4Options liquid_s4;  // its s4 is the one above

  RotRNNOptions rotrnn_options() const {
    return {width,          state, heads, bidirectional, normalisation, c, stationary_start,
            learn_rotation, init};
  }
  LruOptions lru_options() const { return with_sizes(lru); }
  S5Options s5_options() const { return with_sizes(s5); }
  S4DOptions s4d_options() const { return with_sizes(s4d); }
  S4Options s4_options() const { return with_sizes(s4); }
  LiquidS4Options liquid_s4_options() const {
    LiquidS4Options o = liquid_s4;
    o.s4 = s4_options();
    return o;
  }

 private:
  template <typename Options>
  Options with_sizes(Options o) const {
    o.width = width;
    o.state = state;
    o.bidirectional = bidirectional;
    return o;
  }
};

}  // namespace rotrnn
