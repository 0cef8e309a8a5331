#pragma once

#include "rotrnn/base/enum_names.h"

namespace rotrnn {

/// From continuous to discrete time: zero-order hold, or the bilinear rule.
enum class Discretisation { zoh, bilinear };
template <>
inline constexpr std::array kNames<Discretisation>{"zoh", "bilinear"};

}  // namespace rotrnn
