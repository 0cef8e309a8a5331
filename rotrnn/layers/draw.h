#pragma once

#include <torch/torch.h>

#include <cmath>
#include <vector>

#include "rotrnn/kernels/random.h"

namespace rotrnn {

/// Initial values of one parameter, in double: `next(random)` for each in turn.
template <typename Next>
torch::Tensor draw(torch::IntArrayRef shape, Random random, Next next) {
  std::vector<double> values(c10::multiply_integers(shape));
  for (double& value : values) value = next(random);
  return torch::tensor(values, torch::kFloat64).view(shape);
}

inline torch::Tensor draw_normal(torch::IntArrayRef shape, double deviation, Random random) {
  return draw(shape, random, [=](Random& r) { return deviation * r.normal(); });
}

/// Uniform in (low, high), both excluded.
inline torch::Tensor draw_uniform(torch::IntArrayRef shape, double low, double high,
                                  Random random) {
  return draw(shape, random, [=](Random& r) {
    double u = r.uniform();
    while (u == 0) u = r.uniform();
    return std::lerp(low, high, u);
  });
}

/// A normal cut off at twice its deviation and widened so that `deviation` is what remains, as
/// JAX's lecun_normal.
inline torch::Tensor draw_truncated_normal(torch::IntArrayRef shape, double deviation,
                                           Random random) {
  constexpr double kLeft = 0.87962566103423978;  // deviation of a standard normal cut off at ±2
  return draw(shape, random, [=](Random& r) {
    double x = r.normal();
    while (std::abs(x) > 2) x = r.normal();
    return deviation / kLeft * x;
  });
}

}  // namespace rotrnn
