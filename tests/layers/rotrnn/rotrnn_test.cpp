#include "rotrnn/layers/rotrnn/rotrnn.h"

#include <numbers>

#include "rotrnn/layers/rotrnn/coordinates.h"
#include "rotrnn/network/single_layer.h"
#include "rotrnn/network/tensors.h"
#include "rotrnn/training/optimiser.h"
#include "tests/layers/rotrnn/oracle.h"
#include "tests/support/folder.h"

namespace rotrnn::testing {
namespace {

LayerOptions sizes(int64_t width, int64_t state, int64_t heads, bool bidirectional = false) {
  LayerOptions o;
  o.width = width;
  o.state = state;
  o.rotrnn.heads = heads;
  o.bidirectional = bidirectional;
  o.rotrnn.init.theta_max = 2 * std::numbers::pi;
  return o;
}

// Odd and even dh, ragged lengths with 1 among them, around the chunk of the scan.
struct Shape {
  int64_t width, state, heads;
  bool bidirectional;
  std::vector<int64_t> lengths;
};
const Shape kShapes[] = {
    {1, 2, 1, false, {1}},
    {3, 6, 3, false, {5, 1, 9}},
    {4, 15, 3, true, {64, 1, 65, 63}},
    {7, 14, 2, false, {130, 3, 1, 200}},
    {5, 21, 3, true, {1, 1, 1}},
    {2, 11, 1, true, {257, 128}},
};

TEST(Rotrnn, FoldedEqualsUnfoldedInDouble) {
  for (const Shape& s : kShapes) {
    DoubleLayer layer(sizes(s.width, s.state, s.heads, s.bidirectional));
    const DoubleBatch batch = noise(s.lengths, s.width);
    const auto expected = oracle::run<double>(layer, batch);
    const auto actual = layer.forward(batch);
    EXPECT_LE(relative_error(actual.y, expected.y), 1e-10);
    const Doubles x = rotrnn_hidden(layer.options(), layer.values(), actual.z);
    EXPECT_LE(relative_error(x, expected.x), 1e-10);
  }
}

TEST(Rotrnn, FloatErrorIsThatOfAPlainFloatLoop) {
  for (const Shape& s : kShapes) {
    const LayerOptions o = sizes(s.width, s.state, s.heads, s.bidirectional);
    const DoubleLayer exact(o, 1);
    DoubleBatch batch = noise(s.lengths, s.width);
    const std::vector<float> u = as<float>(batch.u);
    batch.u = as<double>(u);
    const Doubles truth = oracle::run<double>(exact, batch).y;
    const double loop = relative_error(oracle::run<float>(exact, batch).y, truth);
    SingleLayer fused(o, 1);
    fused.engine.threads = 2;
    std::vector<float> y(u.size());
    fused.forward({batch.offsets, u.data(), false, {}}, {y.data(), {}});
    // One rounding of the output is granted where the loop happens to be exact.
    EXPECT_LE(relative_error(y, truth), 4 * std::max(loop, 6e-8)) << s.width << " " << s.state;
  }
}

TEST(Rotrnn, RotationStaysARotationUnderTheOptimiser) {
  const LayerOptions o = sizes(4, 40, 5);
  SingleLayer layer(o, 0);
  layer.engine.threads = 1;
  Optimiser optimiser(layer.layout());
  FlatArray gradients(layer.layout());
  const std::vector<int64_t> offsets{0, 6};
  const std::vector<float> u = as<float>(normal(24, 7)), target = as<float>(normal(24, 8));
  std::vector<float> y(24), dy(24), du(24);
  for (int step = 1; step <= 1000; ++step) {
    layer.forward({offsets, u.data(), true, {}}, {y.data(), {}});
    for (size_t i = 0; i < y.size(); ++i) dy[i] = 2 * (y[i] - target[i]) / 24;
    layer.backward({dy.data(), {}}, gradients, {du.data(), {}});
    optimiser.step(step, {0.1, 0.1, 0.01}, gradients, layer.weights(), 1);
  }
  const LayerValues values = layer_values(o, "", layer.weights());
  const float* M = values.tensors["M"];
  const Doubles P = rotrnn_rotations(o, values);
  double scale = 0;
  for (int64_t h = 0; h < 5; ++h) {
    using Matrix = Eigen::Matrix<double, 8, 8, Eigen::RowMajor>;
    const Matrix own = Eigen::Map<const Matrix>(P.data() + 64 * h);
    EXPECT_LE((own * own.transpose() - Matrix::Identity()).cwiseAbs().maxCoeff(), 1e-11);
    EXPECT_NEAR(own.determinant(), 1, 1e-11);
    const Eigen::Map<const Eigen::Matrix<float, 8, 8, Eigen::RowMajor>> m(M + 64 * h);
    scale = std::max(scale, static_cast<double>((m - m.transpose()).cwiseAbs().maxCoeff()));
  }
  EXPECT_GT(scale, 2.0) << "the test should have moved M";
}

// Against the recurrence in scalars: without P every pair of coordinates turns by its own angle.
TEST(Rotrnn, WithoutALearnedRotationPIsTheIdentity) {
  LayerOptions o = sizes(2, 12, 3);
  const DoubleLayer usual(o, 5, 1);
  o.rotrnn.learn_rotation = false;
  DoubleLayer fixed(o, 5, 1);
  EXPECT_TRUE(fixed.gradient("M").empty());
  size_t trained = 0;
  for (const auto& [name, gradient] : fixed.gradients()) {
    EXPECT_EQ(as<float>(fixed.of(name)), as<float>(usual.of(name))) << name;
    ++trained;
  }
  EXPECT_EQ(trained + 1, usual.kind().tensors(usual.options()).parameters.size());
  const size_t T = 6, dh = 4, D = 2, N = 12;
  const DoubleBatch batch = noise({T}, D);
  const Doubles y = fixed.forward(batch).y;
  const auto value = [&](const char* name, size_t i) {
    return static_cast<double>(fixed.of(name)[i]);
  };
  Doubles x(N), expected;
  for (size_t t = 0; t < T; ++t) {
    for (size_t h = 0; h < 3; ++h) {
      const double gamma = std::exp(-std::exp(value("gamma_log", h)));
      double square = 0;
      for (size_t i = 0; i < dh * D; ++i) square += std::pow(value("B", h * dh * D + i), 2);
      const double xi = std::sqrt((1 - gamma * gamma) / square);
      for (size_t j = 0; j < dh; j += 2) {
        const double angle = value("theta", h * dh / 2 + j / 2);
        double &a = x[h * dh + j], &b = x[h * dh + j + 1];
        const double turned = std::cos(angle) * a - std::sin(angle) * b;
        b = gamma * (std::sin(angle) * a + std::cos(angle) * b);
        a = gamma * turned;
        for (size_t d = 0; d < D; ++d) {
          a += xi * value("B", (h * dh + j) * D + d) * batch.u[t * D + d];
          b += xi * value("B", (h * dh + j + 1) * D + d) * batch.u[t * D + d];
        }
      }
    }
    for (size_t d = 0; d < D; ++d) {
      expected.push_back(value("D", d) * batch.u[t * D + d]);
      for (size_t n = 0; n < N; ++n) expected.back() += value("C", d * N + n) * x[n];
    }
  }
  EXPECT_LE(relative_error(y, expected), 1e-12);
}

TEST(Rotrnn, BothInitsHaveTheirDistributions) {
  LayerOptions o = sizes(64, 1024, 256);
  o.rotrnn.init.gamma_min = 0.5;
  o.rotrnn.init.gamma_max = 0.99;
  const DoubleLayer paper(o, 3);
  Doubles gamma, squares;
  for (const float x : paper.of("gamma_log")) {
    gamma.push_back(std::exp(-std::exp(static_cast<double>(x))));
    squares.push_back(gamma.back() * gamma.back());
  }
  EXPECT_NEAR(standard_deviation(paper.of("B")), 1 / 8.0, 0.002);
  EXPECT_NEAR(standard_deviation(paper.of("C")), 1 / 32.0, 0.001);
  EXPECT_NEAR(standard_deviation(paper.of("M")), 1.0, 0.03);
  // On the ring γ² is uniform: its mean is half the sum of the squares, standard error 0.0127.
  EXPECT_NEAR(mean(squares), (0.25 + 0.9801) / 2, 0.05);
  EXPECT_LE(*std::max_element(gamma.begin(), gamma.end()), 0.99);
  EXPECT_GE(*std::min_element(gamma.begin(), gamma.end()), 0.5);
  EXPECT_NEAR(mean(paper.of("theta")), std::numbers::pi, 0.35);

  o.rotrnn.init.preset = InitPreset::authors;
  const DoubleLayer authors(o, 3);
  EXPECT_FALSE(authors.of("theta_log").empty());
  EXPECT_NEAR(standard_deviation(authors.of("B")), 1 / std::sqrt(64 + 1024.0), 0.001);
  EXPECT_NEAR(standard_deviation(authors.of("C")), 1 / std::sqrt(64 + 1024.0), 0.001);
  EXPECT_NEAR(standard_deviation(authors.of("M")), 1 / std::sqrt(1024 + 4.0), 0.001);
  const std::span<float> logs = authors.of("gamma_log");
  const double low = std::log(-std::log(0.99)), high = std::log(-std::log(0.5));
  EXPECT_NEAR(mean(logs), (low + high) / 2, 0.3);
  EXPECT_GE(*std::min_element(logs.begin(), logs.end()), low - 1e-6);
  EXPECT_LE(*std::max_element(logs.begin(), logs.end()), high + 1e-6);
}

TEST(Rotrnn, ImpossibleSizesAreRefused) {
  const auto refused = [](const LayerOptions& o, const char* word) {
    const std::string message = test::message_of<SettingError>([&] { SingleLayer(o, 0); });
    EXPECT_NE(message.find(word), std::string::npos) << message;
  };
  refused(sizes(4, 10, 3), "divide");
  refused(sizes(4, 4, 4), "rotation needs 2");
  refused(sizes(0, 4, 2), "width");
  LayerOptions o = sizes(4, 8, 2);
  o.rotrnn.init.gamma_min = 0.9;
  o.rotrnn.init.gamma_max = 0.5;
  refused(o, "gamma_min");
  o = sizes(4, 8, 2);
  o.rotrnn.stationary_start = true;
  o.rotrnn.normalisation = Normalisation::none;
  refused(o, "stationary_start");
}

}  // namespace
}  // namespace rotrnn::testing
