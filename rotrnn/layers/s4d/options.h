#pragma once

#include <cstdint>

#include "rotrnn/base/enum_names.h"
#include "rotrnn/layers/state_space/discretisation.h"

namespace rotrnn {

/// Λ at the start: evenly spaced frequencies, S4D-Inv's, or those of HiPPO-N.
enum class S4DInit { lin, inv, legs };
template <>
inline constexpr std::array kNames<S4DInit>{"lin", "inv", "legs"};

/// Settings of an S4D layer.
struct S4DOptions {
  S4DInit init = S4DInit::legs;
  Discretisation discretisation = Discretisation::zoh;
  bool tied = false;                    // one Λ and B for all channels
  bool train_b = true;                  // false: B stays what it starts as
  double dt_min = 1e-3, dt_max = 1e-1;  // Δ at the start
  bool dt_global = false;               // log Δ at the global rate, with decay
  double step_rescale = 1;              // multiplies Δ: 2 at half the sampling rate
};

}  // namespace rotrnn
