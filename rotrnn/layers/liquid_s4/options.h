#pragma once

#include <cstdint>

#include "rotrnn/base/enum_names.h"

namespace rotrnn {

/// What the correlation terms are: products of inputs, or those through the kernel of S4.
enum class LiquidForm { pb, kb };
template <>
inline constexpr std::array kNames<LiquidForm>{"pb", "kb"};
/// Products of an input with those before it; or, as in the authors' code, of any of the last.
enum class LiquidMode { causal, reference };
template <>
inline constexpr std::array kNames<LiquidMode>{"causal", "reference"};
/// Coefficients of the products: of the theory, or of the authors' code.
enum class LiquidCoefficient { power, reference };
template <>
inline constexpr std::array kNames<LiquidCoefficient>{"power", "reference"};

/// Settings of a Liquid-S4 layer.
struct LiquidS4Options {
  LiquidForm form = LiquidForm::pb;
  LiquidMode mode = LiquidMode::causal;
  LiquidCoefficient coefficient = LiquidCoefficient::power;
  int64_t degree = 2;        // inputs in the longest product
  bool train_liquid = true;  // false: no gradient through the coefficients
};

inline constexpr int64_t kMostDegree = 8;

}  // namespace rotrnn
