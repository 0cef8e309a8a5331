#pragma once

#include "rotrnn/base/enum_names.h"

/// What a block and a network are made of: an enum and a table of names for each. Names are those
/// of configs, model files and messages, in the order of the values; `none` of an activation or a
/// norm is a bare layer's and has no name.
namespace rotrnn {

/// What follows the layer in a block; the formulas are in kernels/block/activations.h. exact_glu is
/// that of the S4 family.
enum class Activation { half_glu1, full_glu, half_glu2, gelu, exact_glu, none };
enum class Norm { batch, layer, none };
/// How a sequence becomes one vector; none: an output for every token.
enum class Pooling { mean, last, none };

template <>
inline constexpr std::array kNames<Activation>{"half_glu1", "full_glu", "half_glu2", "gelu",
                                               "exact_glu"};
template <>
inline constexpr std::array kNames<Norm>{"batch", "layer"};
template <>
inline constexpr std::array kNames<Pooling>{"mean", "last", "none"};

/// The curve h = f(y) in front of the gate: GELU in its tanh form, or y·Φ(y), Φ the normal
/// distribution.
enum class Curve { gelu, exact_gelu };
inline constexpr std::size_t kCurves = 2;

constexpr Curve curve(Activation a) {
  return a == Activation::exact_glu ? Curve::exact_gelu : Curve::gelu;
}

/// What the gate σ(W2 h) of an activation multiplies: nothing (there is no gate), W1 h, h itself,
/// or the output y of the layer.
enum class Gated { nothing, value, hidden, output };

constexpr Gated gated(Activation a) {
  switch (a) {
    case Activation::full_glu:
    case Activation::exact_glu:
      return Gated::value;
    case Activation::half_glu1:
      return Gated::hidden;
    case Activation::half_glu2:
      return Gated::output;
    case Activation::gelu:
    case Activation::none:
      break;
  }
  return Gated::nothing;
}

/// Whether an activation has a gate W2, and a value branch W1 besides.
constexpr bool has_gate(Activation a) {
  return gated(a) != Gated::nothing;
}
constexpr bool has_value(Activation a) {
  return gated(a) == Gated::value;
}

/// Which of the two places where an activation drops are there: behind the curve, in front of the
/// gate, and at the end.
constexpr bool drops_before_gate(Activation a) {
  return has_gate(a);
}
constexpr bool drops_at_end(Activation a) {
  return a != Activation::exact_glu;
}

}  // namespace rotrnn
