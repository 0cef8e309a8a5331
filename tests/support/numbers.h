#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <vector>

#include "rotrnn/base/random.h"

namespace rotrnn::testing {

using Doubles = std::vector<double>;
using Complexes = std::vector<std::complex<double>>;

/// Largest difference over the largest magnitude of `expected` (at least `floor`).
template <class Actual, class Expected>
double relative_error(const Actual& actual, const Expected& expected, double floor = 1e-12) {
  EXPECT_EQ(actual.size(), expected.size());
  if (actual.size() != expected.size()) return INFINITY;
  double scale = floor, difference = 0;
  auto got = actual.begin();
  for (const auto want : expected) {
    const double error = std::abs(static_cast<decltype(want + 0.0)>(*got++) - want);
    if (std::isnan(error)) return INFINITY;
    scale = std::max(scale, static_cast<double>(std::abs(want)));
    difference = std::max(difference, error);
  }
  return difference / scale;
}

/// Standard normal numbers.
inline Doubles normal(size_t count, uint64_t seed, double scale = 1) {
  Random random(seed, RandomSite::initialise);
  Doubles out(count);
  for (double& x : out) x = scale * random.normal();
  return out;
}

template <class To, class From>
std::vector<To> as(const From& values) {
  return {values.begin(), values.end()};
}

inline Complexes complexes(const Doubles& re, const Doubles& im) {
  Complexes out;
  for (size_t i = 0; i < re.size(); ++i) out.emplace_back(re[i], im[i]);
  return out;
}

inline double dot(const Doubles& a, const Doubles& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

template <class Values>
double mean(const Values& values) {
  double sum = 0;
  for (const auto x : values) sum += static_cast<double>(x);
  return sum / static_cast<double>(values.size());
}

/// About the mean.
template <class Values>
double standard_deviation(const Values& values) {
  const double centre = mean(values);
  double sum = 0;
  for (const auto x : values) sum += std::pow(static_cast<double>(x) - centre, 2);
  return std::sqrt(sum / static_cast<double>(values.size() - 1));
}

/// f'(x), x being moved in place: central differences at h and h/2, extrapolated so that h²
/// cancels. A float must be a multiple of 2⁻¹², so that it moves by h without rounding.
template <class T, class F>
double derivative(T& x, const F& f) {
  const T old = x;
  const auto difference = [&](T h) {
    x = old + h;
    const double plus = f();
    x = old - h;
    const double minus = f();
    x = old;
    return (plus - minus) / (2 * static_cast<double>(h));
  };
  const double wide = difference(T(0x1p-9)), narrow = difference(T(0x1p-10));
  return (4 * narrow - wide) / 3;
}

}  // namespace rotrnn::testing
