#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "rotrnn/base/random.h"
#include "rotrnn/kernels/simd/simd.h"

namespace rotrnn::kernels::testing {

using Floats = std::vector<float>;
using Doubles = std::vector<double>;

/// Normal numbers times scale, a pure function of the seed.
inline Floats normal(size_t count, uint64_t seed, double scale = 1) {
  Random random(seed, RandomSite::initialise);
  Floats v(count);
  for (float& x : v) x = static_cast<float>(random.normal() * scale);
  return v;
}

inline Floats uniform(size_t count, uint64_t seed, double low, double high) {
  Random random(seed, RandomSite::initialise);
  Floats v(count);
  for (float& x : v) x = static_cast<float>(low + (high - low) * random.uniform());
  return v;
}

inline Doubles widen(const Floats& v) {
  return Doubles(v.begin(), v.end());
}

template <class A, class B>
double max_difference(const A& a, const B& b) {
  if (a.size() != b.size()) return INFINITY;
  double worst = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double d = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    if (!(d <= worst)) worst = d;  // NaN counts as worst
  }
  return worst;
}

template <class A>
double max_value(const A& a) {
  double most = 0;
  for (auto x : a) most = std::max(most, std::abs(static_cast<double>(x)));
  return most;
}

/// The rule of the project: error against double at most 4 times that of plain float, above a floor
/// of a few roundings of the largest value (`scale`: of the largest term, where terms cancel).
inline void expect_close(const std::string& what, const Floats& fast, const Floats& plain,
                         const Doubles& exact, double scale = 0) {
  const double error = max_difference(fast, exact);
  const double floor = 1e-6 * std::max(scale, max_value(exact)) + 1e-12;
  const double allowed = 4 * max_difference(plain, exact) + floor;
  EXPECT_LE(error, allowed) << what;
}

/// Runs f once per SIMD target of this machine, or for that of ROTRNN_SIMD alone.
template <class F>
void for_each_target(const F& f) {
  const char* only = std::getenv("ROTRNN_SIMD");
  for (const std::string& name : available_targets()) {
    if (only != nullptr && name != only) continue;
    set_target(name);
    SCOPED_TRACE("target " + name);
    f();
  }
  set_target(only == nullptr ? "" : only);
}

}  // namespace rotrnn::kernels::testing
