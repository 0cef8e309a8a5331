#pragma once

#include <cstdint>

namespace rotrnn {

/// Settings of an S4 layer.
struct S4Options {
  bool tied = false;                    // one Λ, P and B for all channels
  double dt_min = 1e-3, dt_max = 1e-1;  // Δ at the start
  bool dt_global = true;                // log Δ at the global rate, with decay
  int64_t max_length = 0;               // L at the start; 0: the first batch's longest sequence
};

}  // namespace rotrnn
