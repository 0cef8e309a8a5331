#include "rotrnn/layers/state_space/discretise.h"

#include "tests/layers/golden.h"

namespace rotrnn::testing {
namespace {

using Complex = std::complex<double>;

using Long = std::complex<long double>;

// φ(w) = (e^w - 1)/w and its derivative in long double, by their series where a difference would
// lose digits: Σ wᵏ/(k+1)! and Σ k·wᵏ⁻¹/(k+1)!.
std::pair<Long, Long> exponential_mean(Long w) {
  if (std::abs(w) > 0.5L) {
    const Long value = (std::exp(w) - 1.0L) / w;
    return {value, (std::exp(w) - value) / w};
  }
  Long value = 1, slope = 0, power = 1;  // w^k
  long double factorial = 1;
  for (int k = 1; k < 40; ++k) {
    factorial *= static_cast<long double>(k + 1);
    slope += static_cast<long double>(k) * power / factorial;
    power *= w;
    value += power / factorial;
  }
  return {value, slope};
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
  for (const double step :
       {1e-16, 1e-12, 1e-8, 2e-6, 1e-5, 9.9e-5, 1.01e-4, 1e-3, 0.0999, 0.1, 0.1001, 1.0, 7.0}) {
    for (const Complex Lambda : {Complex(-1, 0), Complex(-0.6, -0.8), Complex(0, -1)}) {
      const auto [mean, slope] = exponential_mean(Long(Lambda) * static_cast<long double>(step));
      const Complex expected = step * Complex(mean);
      const Complex scale = discretise(Lambda, step, Discretisation::zoh).scale;
      EXPECT_LE(std::abs(scale - expected) / step, 1e-14) << step;
      // ∂scale/∂Λ = Δ²·φ'(ΛΔ), and ∂scale/∂Δ = e^{ΛΔ}.
      for (const Complex of : {Complex(1, 0), Complex(0, 1)}) {
        const auto g = discretise_backward(Lambda, step, Discretisation::zoh, {0, of});
        const Complex by_Lambda = step * step * Complex(std::conj(slope)) * of;
        EXPECT_LE(std::abs(g.Lambda - by_Lambda) / std::abs(by_Lambda), 1e-12) << step;
        EXPECT_NEAR(g.step, (std::conj(of) * std::exp(Lambda * step)).real(), 1e-13) << step;
      }
    }
  }
  EXPECT_EQ(discretise(0, 0.25, Discretisation::zoh).scale, Complex(0.25, 0));
  const auto g = discretise_backward(0, 0.25, Discretisation::zoh, {1, 1});
  EXPECT_TRUE(std::isfinite(std::abs(g.Lambda)) && std::isfinite(g.step));
}

}  // namespace
}  // namespace rotrnn::testing
