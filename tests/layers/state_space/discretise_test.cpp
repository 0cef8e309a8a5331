#include "rotrnn/layers/state_space/discretise.h"

#include "tests/layers/golden.h"

namespace rotrnn::testing {
namespace {

using Complex = std::complex<double>;

// (e^{ΛΔ} - 1)/Λ in long double, by a Taylor sum where the difference would lose digits.
Complex zoh_input(Complex lambda, double step) {
  using Long = std::complex<long double>;
  const Long w = Long(lambda) * static_cast<long double>(step);
  Long sum = 1, term = 1;
  if (std::abs(w) > 0.5L) {
    sum = (std::exp(w) - 1.0L) / w;
  } else {
    for (int k = 2; k < 40; ++k) sum += term *= w / static_cast<long double>(k);
  }
  return Complex(sum * static_cast<long double>(step));
}

TEST(Discretise, IsThatOfExactArithmetic) {
  const auto& table = golden("s5").at("discretisation");
  const Complexes Lambda = complex_array(table, "Lambda");
  const Doubles step = array(table, "Delta");
  ASSERT_GT(step.size(), 30u);
  for (const std::string method : {"zoh", "bilinear"}) {
    const auto rule = method == "zoh" ? Discretisation::zoh : Discretisation::bilinear;
    const Complexes lambda = complex_array(table, method + "_Lambda_bar");
    const Complexes scale = complex_array(table, method + "_factor");
    for (size_t i = 0; i < step.size(); ++i) {
      const Discretised d = discretise(Lambda[i], step[i], rule);
      // Every entry by itself: they lie many orders of magnitude apart. A rounding of ΛΔ ≤ 100 is
      // 1e-14 of the exponential.
      EXPECT_LE(std::abs(d.lambda / lambda[i] - 1.0), 1e-12) << method << " " << i;
      EXPECT_LE(std::abs(d.scale / scale[i] - 1.0), 1e-12) << method << " " << i;
    }
  }
}

// From steps so small that e^{ΛΔ} - 1 has no digits, through where the series ends, to large ones,
// and at Λ = 0 itself.
TEST(Discretise, ZeroOrderHoldIsExactForAnyStep) {
  const auto scale_of = [](Complex Lambda, double step) {
    return discretise(Lambda, step, Discretisation::zoh).scale;
  };
  for (const double step :
       {1e-16, 1e-12, 1e-8, 9.9e-5, 1.01e-4, 1e-3, 0.0999, 0.1001, 0.1, 1.0, 7.0}) {
    for (const Complex Lambda : {Complex(-1, 0), Complex(-0.6, -0.8), Complex(0, -1)}) {
      EXPECT_LE(std::abs(scale_of(Lambda, step) - zoh_input(Lambda, step)) / step, 1e-14) << step;
      // The gradients of Re(scale) and Im(scale), against the same in long double.
      const double h = 1e-4;
      const Complex slope = (zoh_input(Lambda + h, step) - zoh_input(Lambda - h, step)) / (2 * h);
      for (const Complex of : {Complex(1, 0), Complex(0, 1)}) {
        const auto g = discretise_backward(Lambda, step, Discretisation::zoh, {0, of});
        const double expected = (std::conj(of) * slope).real();
        EXPECT_LE(std::abs(g.Lambda.real() - expected) / step, 1e-8 * std::max(1.0, step * step))
            << step;
      }
    }
  }
  EXPECT_EQ(scale_of(0, 0.25), Complex(0.25, 0));
  const auto g = discretise_backward(0, 0.25, Discretisation::zoh, {1, 1});
  EXPECT_TRUE(std::isfinite(std::abs(g.Lambda)) && std::isfinite(g.step));
}

}  // namespace
}  // namespace rotrnn::testing
