#include "rotrnn/layers/state_space/discretise.h"

#include <cmath>

namespace rotrnn {
namespace {

using Complex = std::complex<double>;

// e^{a+ib} - 1 without the difference: expm1(a)·cos b - 2 sin²(b/2) + i·e^a·sin b.
Complex expm1(Complex w) {
  const double half = std::sin(w.imag() / 2);
  return {std::expm1(w.real()) * std::cos(w.imag()) - 2 * half * half,
          std::exp(w.real()) * std::sin(w.imag())};
}

// φ(w) = (e^w - 1)/w and its derivative φ'(w) = (e^w - φ(w))/w. Near 0 by their series: the
// derivative is a difference of numbers that agree in their first digits there.
struct Mean {
  Complex value, slope;
};

Mean exponential_mean(Complex w) {
  if (std::abs(w) < 0.1) {  // Σ wᵏ/(k+1)! and Σ (k+1)·wᵏ/(k+2)!, 1e-19 of it left out
    Complex value = 0, slope = 0;
    double factorial = 6227020800;  // 13!
    for (int k = 12; k >= 0; --k) {
      value = value * w + 1 / factorial;
      if (k > 0) slope = slope * w + k / factorial;
      factorial /= k + 1;
    }
    return {value, slope};
  }
  const Complex value = expm1(w) / w;
  return {value, (std::exp(w) - value) / w};
}

}  // namespace

Discretised discretise(Complex Lambda, double step, Discretisation rule) {
  const Complex w = Lambda * step;
  if (rule == Discretisation::zoh) return {std::exp(w), step * exponential_mean(w).value};
  const Complex half = 1.0 / (1.0 - w / 2.0);
  return {(1.0 + w / 2.0) * half, step * half};
}

// With w = ΛΔ, zoh: λ' = e^w and scale = Δ·φ(w); bilinear, with h = 1/(1 - w/2): λ' = h², h' = h²/2
// and scale = Δ·h. Both functions of w are holomorphic, so ∂w = conj(f')·∂f.
DiscretisedGradient discretise_backward(Complex Lambda, double step, Discretisation rule,
                                        const Discretised& gradient) {
  const Complex w = Lambda * step;
  Complex dw, factor;  // factor: scale/Δ
  if (rule == Discretisation::zoh) {
    const Mean mean = exponential_mean(w);
    factor = mean.value;
    dw = std::conj(std::exp(w)) * gradient.lambda + step * std::conj(mean.slope) * gradient.scale;
  } else {
    factor = 1.0 / (1.0 - w / 2.0);
    const Complex square = std::conj(factor * factor);
    dw = square * gradient.lambda + step * square / 2.0 * gradient.scale;
  }
  return {step * dw, (std::conj(factor) * gradient.scale).real() + (std::conj(Lambda) * dw).real()};
}

}  // namespace rotrnn
