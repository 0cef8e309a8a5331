#pragma once

#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <optional>

namespace rotrnn::fit {

/// The penalty with the smallest loss, on a grid of half decades between 1e-5 and 1e4: downhill
/// from 1e-2 by decades, then the two half decades beside. About six evaluations. `loss` gives
/// nothing where the penalty is too small for the rounding of the equations.
inline double search_penalty(const std::function<std::optional<double>(double)>& loss) {
  constexpr int kLow = -10, kHigh = 8;  // half decades
  std::map<int, double> known;
  const auto at = [&](int half) {
    if (half < kLow || half > kHigh) return std::numeric_limits<double>::infinity();
    const auto found = known.find(half);
    if (found != known.end()) return found->second;
    const auto value = loss(std::pow(10.0, half / 2.0));
    return known[half] =
               value && std::isfinite(*value) ? *value : std::numeric_limits<double>::infinity();
  };
  int best = -4;
  while (!std::isfinite(at(best)) && best < kHigh) best += 2;
  for (const int step : {2, 1}) {
    for (;;) {
      int next = best;
      if (at(best + step) < at(next)) next = best + step;
      if (at(best - step) < at(next)) next = best - step;
      if (next == best) break;
      best = next;
      if (step == 1) break;
    }
  }
  return std::pow(10.0, best / 2.0);
}

}  // namespace rotrnn::fit
