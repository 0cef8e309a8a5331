#pragma once

#include <cstdint>

#include "rotrnn/layers/state_space/discretisation.h"

namespace rotrnn {

/// Λ at the start: evenly spaced frequencies, S4D-Inv's, or those of HiPPO-N.
enum class S4DInit { lin, inv, legs };

/// Sizes and settings of an S4D layer.
struct S4DOptions {
  int64_t width = 256;  // D
  int64_t state = 64;   // N of every channel; ⌊N/2⌋ complex states are kept
  bool bidirectional = false;
  S4DInit init = S4DInit::legs;
  Discretisation discretisation = Discretisation::zoh;
  bool tied = false;                    // one Λ and B for all channels
  bool train_b = true;                  // false: B stays what it starts as
  double dt_min = 1e-3, dt_max = 1e-1;  // Δ at the start
  bool dt_global = false;               // log Δ at the global rate, with decay
  double step_rescale = 1;              // multiplies Δ: 2 at half the sampling rate

  int64_t states() const { return state / 2; }  // of a channel
};

/// Throws SettingError when the settings cannot be; without `sizes`, of those that layers share,
/// nothing is said.
void check(const S4DOptions& options, bool sizes = true);

}  // namespace rotrnn
