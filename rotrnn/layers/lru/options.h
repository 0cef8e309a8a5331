#pragma once

#include <cstdint>
#include <numbers>

#include "rotrnn/base/enum_names.h"

namespace rotrnn {

/// Whether the scale of an LRU's input is a parameter, or computed from λ in every pass.
enum class LruGamma { learned, fixed };
template <>
inline constexpr std::array kNames<LruGamma>{"learned", "fixed"};

/// Settings of an LRU layer.
struct LruOptions {
  double r_min = 0, r_max = 1;              // |λ| at the start
  double max_phase = 2 * std::numbers::pi;  // largest arg λ at the start
  LruGamma gamma = LruGamma::learned;
};

}  // namespace rotrnn
