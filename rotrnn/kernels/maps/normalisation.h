#pragma once

#include "rotrnn/base/enum_names.h"

namespace rotrnn::kernels {

/// How RotRNN scales its input against the memory of the state: see docs/layers.md.
enum class Normalisation { xi, alpha, none };

}  // namespace rotrnn::kernels

namespace rotrnn {
template <>
inline constexpr std::array kNames<kernels::Normalisation>{"xi", "alpha", "none"};
}  // namespace rotrnn
