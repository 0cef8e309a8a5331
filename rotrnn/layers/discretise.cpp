#include "rotrnn/layers/discretise.h"

namespace rotrnn {
namespace {

using torch::Tensor;

// (e^w - 1)/w for complex w. Near 0 by its series: the quotient is 0/0 there, and its derivative a
// difference of large numbers.
Tensor exponential_mean(const Tensor& w) {
  const Tensor near = w.abs() < 1e-4, one = torch::ones_like(w);
  const Tensor n = torch::where(near, w, torch::zeros_like(w)), f = torch::where(near, one, w);
  const Tensor series = 1 + n * (1. / 2 + n * (1. / 6 + n * (1. / 24)));
  // e^{a+ib} - 1 without the difference: expm1(a)·cos b - 2 sin²(b/2) + i·e^a·sin b.
  const Tensor a = torch::real(f), b = torch::imag(f);
  const Tensor re = torch::expm1(a) * torch::cos(b) - 2 * torch::sin(b / 2).square();
  const Tensor expm1 = torch::complex(re, torch::exp(a) * torch::sin(b));
  return torch::where(near, series, expm1 / f);
}

}  // namespace

Tensor join(const Tensor& re, const Tensor& im) {
  return torch::complex(re.to(torch::kFloat64), im.to(torch::kFloat64));
}

Discrete discretise(const Tensor& Lambda, const Tensor& step, Discretisation rule) {
  const Tensor w = Lambda * step;
  if (rule == Discretisation::zoh) return {torch::exp(w), step * exponential_mean(w)};
  const Tensor half = 1 / (1 - w / 2);
  return {(1 + w / 2) * half, step * half};
}

}  // namespace rotrnn
