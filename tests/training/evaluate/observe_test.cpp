#include "rotrnn/training/evaluate/observe.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <complex>

#include "rotrnn/layers/layer_table.h"
#include "rotrnn/network/tensors.h"
#include "tests/layers/double_layer.h"

namespace rotrnn {
namespace {

using Complex = std::complex<double>;

const DataShape kTokens{InputKind::tokens, 5, TargetKind::classes, 3};

Network network_of(const std::string& layer, int64_t width, int64_t state) {
  ModelOptions m;
  m.layer = layer;
  m.width = width;
  m.state = state;
  m.rotrnn.heads = 2;
  m.depth = 2;
  m.s4.max_length = 32;
  return Network(m, kTokens, 3);
}

std::vector<Complex> values_of(const nlohmann::ordered_json& layer) {
  std::vector<Complex> out;
  for (size_t i = 0; i < layer.at("re").size(); ++i) {
    out.emplace_back(layer.at("re")[i].get<double>(), layer.at("im")[i].get<double>());
  }
  return out;
}

// The largest distance of a value to the nearest one of the other set, both ways.
double distance(const std::vector<Complex>& a, const std::vector<Complex>& b) {
  double worst = a.empty() == b.empty() ? 0 : INFINITY;
  for (const auto& [from, to] : {std::pair{&a, &b}, std::pair{&b, &a}}) {
    for (const Complex& x : *from) {
      double nearest = INFINITY;
      for (const Complex& y : *to) nearest = std::min(nearest, std::abs(x - y));
      worst = std::max(worst, nearest);
    }
  }
  return worst;
}

constexpr double kDigits = 1e-6;  // six digits of numbers up to 1

TEST(LambdaLine, LruFromItsParameters) {
  Network network = network_of("lru", 6, 8);
  const auto line = lambda_line(network, 70);
  EXPECT_EQ(line.at("step"), 70);
  EXPECT_EQ(line.at("split"), "lambda");
  ASSERT_EQ(line.at("layers").size(), 2u);
  for (size_t block = 0; block < 2; ++block) {
    const std::string at = "blocks." + std::to_string(block) + ".layer.";
    const auto nu = network.weights().find(at + "nu_log");
    const auto theta = network.weights().find(at + "theta_log");
    ASSERT_EQ(nu.size(), 4u);
    std::vector<Complex> expected;
    for (size_t i = 0; i < 4; ++i) {
      expected.push_back(std::exp(
          Complex(-std::exp(static_cast<double>(nu[i])), std::exp(static_cast<double>(theta[i])))));
    }
    EXPECT_EQ(line.at("layers")[block].at("of"), 4);
    EXPECT_LE(distance(values_of(line.at("layers")[block]), expected), kDigits);
  }
}

TEST(LambdaLine, RotationsLieInTheDiskAndManyAreThinned) {
  Network network = network_of("rotrnn", 4, 600);
  const auto line = lambda_line(network, 0);
  const auto values = values_of(line.at("layers")[0]);
  EXPECT_EQ(line.at("layers")[0].at("of"), 300);
  EXPECT_EQ(values.size(), 128u);
  for (const Complex& value : values) EXPECT_LT(std::abs(value), 1);
}

// The characteristic equation of a step without input, x ← λ ⊙ x + p·Re(q·x), with real states
// [Re x; Im x]: an eigenvalue μ with 1 = Σ_n ½·(q_n p_n/(μ - λ_n) + conj(q_n p_n)/(μ - conj λ_n)).
TEST(LambdaLine, S4SolvesTheCharacteristicEquation) {
  Network network = network_of("s4", 3, 8);
  const auto line = lambda_line(network, 0);
  const ModelOptions& m = network.options();
  const auto values = layer_values(m, 1, network.weights());
  const auto recurrence = layer_kind("s4").recurrence(m, values, false);
  const auto& steps = std::get<ChannelSteps>(recurrence);
  const auto found = values_of(line.at("layers")[1]);
  ASSERT_EQ(found.size(), 2u * 3 * 4);
  EXPECT_EQ(line.at("layers")[1].at("of"), 2 * 3 * 4);
  ASSERT_FALSE(steps.p_re.empty());
  for (size_t i = 0; i < found.size(); ++i) {
    const size_t channel = i / 8;
    // 1 - the sum changes by its slope times what the line has been rounded by.
    Complex sum = 0, slope = 0;
    for (size_t n = channel * 4; n < channel * 4 + 4; ++n) {
      const Complex lambda(steps.lambda_re[n], steps.lambda_im[n]);
      const Complex pq =
          Complex(steps.p_re[n], steps.p_im[n]) * Complex(steps.q_re[n], steps.q_im[n]) / 2.0;
      sum += pq / (found[i] - lambda) + std::conj(pq) / (found[i] - std::conj(lambda));
      slope -= pq / std::pow(found[i] - lambda, 2) +
               std::conj(pq) / std::pow(found[i] - std::conj(lambda), 2);
    }
    EXPECT_LE(std::abs((1.0 - sum) / slope), kDigits) << i;
    // All are different ones: with the equation they are all there are.
    for (size_t k = channel * 8; k < i; ++k) EXPECT_GT(std::abs(found[i] - found[k]), 1e-4);
  }
}

TEST(LambdaLine, S4dLooksAtWholeChannels) {
  Network network = network_of("s4d", 100, 32);
  const auto line = lambda_line(network, 0);
  const size_t states = 16;  // pairs of 32 real dimensions
  EXPECT_EQ(line.at("layers")[0].at("of"), 100 * states);
  EXPECT_EQ(line.at("layers")[0].at("re").size(), 128u);
  EXPECT_EQ(line.at("layers")[0].at("re").size() % states, 0u);
  // Those of the first channel come first.
  const auto values = layer_values(network.options(), 0, network.weights());
  const auto recurrence = layer_kind("s4d").recurrence(network.options(), values, false);
  const auto& steps = std::get<ChannelSteps>(recurrence);
  ASSERT_EQ(steps.lambda_re.size(), 100 * states);
  std::vector<Complex> first, found = values_of(line.at("layers")[0]);
  for (size_t n = 0; n < states; ++n) first.emplace_back(steps.lambda_re[n], steps.lambda_im[n]);
  found.resize(states);
  EXPECT_LE(distance(found, first), kDigits);
}

TEST(LambdaLine, IsNullForALayerWithoutARecurrence) {
  ModelOptions m = network_of("liquid_s4", 3, 8).options();
  m.liquid_s4.mode = LiquidMode::reference;
  Network network(m, kTokens, 3);
  const auto line = lambda_line(network, 0);
  ASSERT_EQ(line.at("layers").size(), 2u);
  EXPECT_TRUE(line.at("layers")[0].is_null());
}

TEST(NormsLine, IsTheMeanOfTheNormsAndNullWithoutStates) {
  const std::vector<int64_t> tokens{0, 1, 2, 3, 4, 1}, offsets{0, 4, 6};
  const PackedInput batch{offsets, tokens, {}};
  Workspace workspace;
  Network network = network_of("rotrnn", 6, 8);
  const auto line = norms_line(network, workspace, batch, 9);
  EXPECT_EQ(line.at("split"), "norms");
  EXPECT_EQ(line.at("step"), 9);
  const auto norms = network.state_norms(batch, workspace);
  for (size_t block = 0; block < 2; ++block) {
    double whole = 0, head = 0;  // token by token
    for (size_t t = 0; t < 6; ++t) {
      const double a = norms.blocks[block][2 * t], b = norms.blocks[block][2 * t + 1];
      whole += std::sqrt(a * a + b * b);
      head += a + b;
    }
    EXPECT_NEAR(line.at("whole")[block].get<double>(), whole / 6, 1e-5);  // float32
    EXPECT_NEAR(line.at("head")[block].get<double>(), head / 12, 1e-5);
  }
  EXPECT_EQ(line.at("head").size(), 2u);
  Network convolution = network_of("s4", 6, 8);
  EXPECT_TRUE(norms_line(convolution, workspace, batch, 9).is_null());
}

}  // namespace
}  // namespace rotrnn
