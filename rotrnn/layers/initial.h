#pragma once

#include <cmath>
#include <span>

#include "rotrnn/base/random.h"

/// Initial values, drawn in double and rounded.
namespace rotrnn {

/// The stream of a layer's parameter.
inline Random layer_random(uint64_t seed, uint64_t stream, uint64_t parameter) {
  return {seed, RandomSite::initialise, {stream, parameter}};
}

/// `next(random)` for each value in turn.
template <class T, class Next>
void draw(std::span<T> out, Random random, const Next& next) {
  for (T& value : out) value = static_cast<T>(next(random));
}

template <class T>
void draw_normal(std::span<T> out, double standard_deviation, Random random) {
  draw(out, random, [=](Random& r) { return standard_deviation * r.normal(); });
}

/// Uniform in (low, high), both excluded.
template <class T>
void draw_uniform(std::span<T> out, double low, double high, Random random) {
  draw(out, random, [=](Random& r) {
    double u = r.uniform();
    while (u == 0) u = r.uniform();
    return std::lerp(low, high, u);
  });
}

/// A normal cut off at twice its standard deviation and widened so that
/// `standard_deviation` remains, as JAX's lecun_normal.
template <class T>
void draw_truncated_normal(std::span<T> out, double standard_deviation, Random random) {
  constexpr double kLeft = 0.87962566103423978;  // of a standard normal cut off at ±2
  draw(out, random, [=](Random& r) {
    double x = r.normal();
    while (std::abs(x) > 2) x = r.normal();
    return standard_deviation / kLeft * x;
  });
}

}  // namespace rotrnn
