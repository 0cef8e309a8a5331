#pragma once

#include <cstdint>

#include "rotrnn/base/enum_names.h"
#include "rotrnn/layers/state_space/discretisation.h"

namespace rotrnn {

/// Distribution of C at the start; the first two are drawn in the basis of HiPPO, the last in its
/// eigenbasis.
enum class S5CInit { lecun_normal, trunc_standard_normal, complex_normal };
template <>
inline constexpr std::array kNames<S5CInit>{"lecun_normal", "trunc_standard_normal",
                                            "complex_normal"};
/// Which learning rate and decay B, C and D get; see docs/layers.md.
enum class S5Groups { standard, b_and_c_decay, b_fast_and_c_decay, no_bc_decay };
template <>
inline constexpr std::array kNames<S5Groups>{"standard", "BandCdecay", "BfastandCdecay",
                                             "noBCdecay"};

/// Settings of an S5 layer.
struct S5Options {
  int64_t blocks = 8;  // J, divides P; P/J is even
  Discretisation discretisation = Discretisation::zoh;
  S5CInit c_init = S5CInit::lecun_normal;
  double dt_min = 1e-3, dt_max = 1e-1;  // Δ at the start
  bool clip = false;                    // keep Re Λ at -1e-4 or below
  double step_rescale = 1;              // times Δ: 2 at half the sampling rate
  S5Groups groups = S5Groups::standard;
  bool dt_global = false;  // log Δ at the global rate, with decay
};

}  // namespace rotrnn
