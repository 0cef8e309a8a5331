#pragma once

#include <cstdint>

namespace rotrnn {

/// Sizes and settings of an S4 layer.
struct S4Options {
  int64_t width = 256;  // D
  int64_t state = 64;   // N of every channel; ⌊N/2⌋ complex states are kept
  bool bidirectional = false;
  bool tied = false;                    // one Λ, P and B for all channels
  double dt_min = 1e-3, dt_max = 1e-1;  // Δ at the start
  bool dt_global = true;                // log Δ at the global rate, with decay
  int64_t max_length = 0;               // L at the start; 0: the first batch's longest sequence

  int64_t states() const { return state / 2; }  // of a channel
};

/// Throws SettingError when the settings cannot be; without `sizes`, of those that layers share,
/// nothing is said.
void check(const S4Options& options, bool sizes = true);

}  // namespace rotrnn
