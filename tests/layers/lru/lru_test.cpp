#include "rotrnn/layers/lru/lru.h"

#include "tests/layers/golden.h"

namespace rotrnn::testing {
namespace {

template <class Values>
std::pair<double, double> range(const Values& values) {
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  return {static_cast<double>(*low), static_cast<double>(*high)};
}

TEST(Lru, InitialValuesHaveTheirDistributions) {
  LayerOptions o;
  o.layer = "lru";
  o.width = 64;
  o.state = 4000;
  o.lru.r_min = 0.5;
  o.lru.r_max = 0.99;
  o.lru.max_phase = 1;
  o.bidirectional = true;
  const DoubleLayer layer(o, 3);
  Doubles radius, square, phase, gamma_log;
  for (const float x : layer.of("nu_log")) {
    radius.push_back(std::exp(-std::exp(static_cast<double>(x))));
    square.push_back(radius.back() * radius.back());
    gamma_log.push_back(0.5 * std::log(1 - square.back()));
  }
  // Bounds up to the rounding of nu_log in float32.
  EXPECT_GE(range(radius).first, 0.5 - 1e-6);
  EXPECT_LE(range(radius).second, 0.99 + 1e-6);
  // Uniform on the ring: |λ|² is uniform; 2,000 draws, five standard errors.
  const double width = 0.9801 - 0.25;
  EXPECT_NEAR(mean(square), (0.9801 + 0.25) / 2, 5 * width / std::sqrt(12 * 2000.0));
  for (const float x : layer.of("theta_log")) phase.push_back(std::exp(static_cast<double>(x)));
  EXPECT_LE(range(phase).second, 1 + 1e-6);
  EXPECT_NEAR(mean(phase), 0.5, 5 / std::sqrt(12 * 2000.0));
  EXPECT_LE(relative_error(layer.of("gamma_log"), gamma_log), 1e-6);
  for (const char* name : {"B_re", "B_im"}) {
    EXPECT_NEAR(standard_deviation(layer.of(name)) * std::sqrt(2 * 64.0), 1, 0.01);
  }
  for (const char* name : {"C_re", "C_im", "C_reverse_re", "C_reverse_im"}) {
    EXPECT_NEAR(standard_deviation(layer.of(name)) * std::sqrt(2000.0), 1, 0.01);
  }
  EXPECT_NEAR(standard_deviation(layer.of("D")), 1, 0.5);

  o.lru.gamma = LruGamma::fixed;
  EXPECT_TRUE(DoubleLayer(o, 3).of("gamma_log").empty());
}

// From the values that u1 and u2 give, the layer must make the λ and the γ that were asked for; up
// to half a unit in the last place of the float32 that nu_log and theta_log are.
TEST(Lru, RadiusPhaseAndScaleAreThoseOfTheUniformNumbers) {
  const auto half_unit = [](double x) { return std::abs(x) * 0x1p-24; };
  for (const auto& [name, c] : golden("lru").at("init").items()) {
    const Doubles u1 = array(c, "u1"), u2 = array(c, "u2");
    const Doubles nu_log = array(c, "nu_log"), theta_log = array(c, "theta_log");
    const Doubles gamma_log = array(c, "gamma_log");
    LayerOptions o;
    o.layer = "lru";
    o.width = 1;
    o.state = 2 * static_cast<int64_t>(u1.size());
    o.lru.gamma = LruGamma::fixed;
    DoubleLayer layer(o);
    const auto set = [&](const char* parameter, const Doubles& values) {
      const std::vector<float> rounded = as<float>(values);
      std::copy(rounded.begin(), rounded.end(), layer.of(parameter).begin());
    };
    set("nu_log", nu_log);
    set("theta_log", theta_log);
    set("B_re", Doubles(u1.size(), 1));
    set("B_im", Doubles(u1.size(), 1));
    const auto& s = std::get<Diagonal<double>>(layer.map(1));
    const double low = c.at("r_min"), high = c.at("r_max"), phase = c.at("max_phase");
    for (size_t j = 0; j < u1.size(); ++j) {
      const double radius = std::sqrt(low * low + (high * high - low * low) * u1[j]);
      const std::complex<double> lambda = std::polar(radius, phase * u2[j]);
      // |∂λ/∂nu_log| = |λ|·e^{nu_log} and |∂λ/∂theta_log| = |λ|·θ.
      const double rounding = radius * (std::exp(nu_log[j]) * half_unit(nu_log[j]) +
                                        phase * u2[j] * half_unit(theta_log[j]));
      EXPECT_LE(std::abs(std::complex<double>(s.lambda_re[j], s.lambda_im[j]) - lambda),
                rounding + kGolden)
          << name << " " << j;
      // ∂(log γ)/∂nu_log is at most ½.
      for (const double W : {s.W[j], s.W[u1.size() + j]}) {
        EXPECT_NEAR(W / std::exp(gamma_log[j]), 1, half_unit(nu_log[j]) + kGolden) << name;
      }
    }
  }
}

}  // namespace
}  // namespace rotrnn::testing
