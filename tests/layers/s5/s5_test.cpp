#include "rotrnn/layers/s5/s5.h"

#include "rotrnn/layers/initial.h"
#include "rotrnn/layers/state_space/hippo.h"
#include "tests/layers/golden.h"

namespace rotrnn::testing {
namespace {

using Eigen::MatrixXcd;

LayerOptions s5(int64_t width, int64_t state, int64_t blocks) {
  LayerOptions o;
  o.layer = "s5";
  o.width = width;
  o.state = state;
  o.s5.blocks = blocks;
  return o;
}

// A parameter [rows, columns], complex.
MatrixXcd matrix(const DoubleLayer& layer, const std::string& name, int64_t rows) {
  const std::span<float> re = layer.of(name + "_re"), im = layer.of(name + "_im");
  MatrixXcd out(rows, static_cast<int64_t>(re.size()) / rows);
  for (size_t i = 0; i < re.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    out(at / out.cols(), at % out.cols()) = {static_cast<double>(re[i]),
                                             static_cast<double>(im[i])};
  }
  return out;
}

Doubles flat(const Eigen::MatrixXd& m) {
  return {m.data(), m.data() + m.size()};
}

double largest(const Eigen::MatrixXd& m) {
  return m.cwiseAbs().maxCoeff();
}

constexpr double kLeft = 0.87962566103423978;  // of a standard normal cut off at ±2

TEST(S5, InitialValuesHaveTheirDistributions) {
  LayerOptions o = s5(96, 128, 4);
  o.bidirectional = true;
  const DoubleLayer layer(o, 3);
  const HippoBasis& block = hippo_basis(32);
  Doubles frequencies;
  for (int64_t i = 0; i < 64; ++i) frequencies.push_back(block.lambda[i % 16].imag());
  EXPECT_LE(relative_error(layer.of("Lambda_im"), frequencies), 1e-7);
  EXPECT_LE(relative_error(layer.of("Lambda_re"), Doubles(64, -0.5)), 1e-7);

  // VᴴB of a real B and a unitary V with its conjugates: 2·Re(V·VᴴB) is B again.
  const MatrixXcd kept = matrix(layer, "B", 64);
  Eigen::MatrixXd B(128, 96);
  for (int64_t j = 0; j < 4; ++j) {
    B.middleRows(32 * j, 32) = 2 * (block.V * kept.middleRows(16 * j, 16)).real();
  }
  EXPECT_NEAR(standard_deviation(flat(B)) * std::sqrt(128.0), 1, 0.02);
  const double cut = 2 / kLeft / std::sqrt(128.0);
  EXPECT_LE(largest(B), cut + 1e-6);
  EXPECT_GE(largest(B), 0.98 * cut);

  EXPECT_NEAR(standard_deviation(layer.of("D")), 1, 0.4);
  for (const float x : layer.of("log_step")) {
    EXPECT_GE(x, std::log(1e-3) - 1e-6);
    EXPECT_LE(x, std::log(1e-1) + 1e-6);
  }
  EXPECT_NEAR(mean(layer.of("log_step")), std::log(1e-2),
              5 * std::log(100.0) / std::sqrt(12 * 64.0));

  // Mean |C̃|²: twice the variance of a part, V having unit columns. 12,288 numbers.
  for (const auto& [init, expected] : {std::pair{S5CInit::lecun_normal, 2.0 / (128 * 96)},
                                       std::pair{S5CInit::trunc_standard_normal, 2.0 / 128},
                                       std::pair{S5CInit::complex_normal, 1.0}}) {
    o.s5.c_init = init;
    const DoubleLayer other(o, 3);
    for (const char* name : {"C", "C_reverse"}) {
      const MatrixXcd C = matrix(other, name, 96);
      const double square = C.cwiseAbs2().mean();
      EXPECT_NEAR(square / expected, 1, 0.05) << static_cast<int>(init);
      EXPECT_NEAR(C.real().array().square().mean() / (square / 2), 1, 0.1);
    }
  }
}

// The real B that was drawn comes back as 2·Re(V B̃): in another basis than that of V, or with its
// conjugate, the entries would mix and pass the cut at two standard deviations. 1.1369 widens a
// normal cut there to standard deviation 1.
TEST(S5, StartsAsHippoInItsBlocks) {
  for (const auto& [name, c] : golden("s5").at("init").items()) {
    const LayerOptions o = s5(200, c.at("P"), c.at("J"));
    const DoubleLayer layer(o, /*seed=*/5, /*stream=*/1);
    // The parameters are float32.
    for (const char* part : {"Lambda_re", "Lambda_im"}) {
      EXPECT_LE(relative_error(layer.of(part), array(c, part)), 1e-7) << name << " " << part;
    }
    const Complexes given = complex_array(c, "V");
    const MatrixXcd V =
        Eigen::Map<const Eigen::Matrix<std::complex<double>, -1, -1, Eigen::RowMajor>>(
            given.data(), o.state, o.state / 2);
    const Eigen::MatrixXd B = 2 * (V * matrix(layer, "B", o.state / 2)).real();
    const double expected = 1 / std::sqrt(static_cast<double>(o.state));
    const double cut = 2 * 1.13685 * expected * (1 + 1e-6);
    EXPECT_LE(largest(B), cut) << name;
    // 1,200 numbers and more: the standard deviation is known to 2%; three times that.
    EXPECT_NEAR(standard_deviation(flat(B)), expected, 0.06 * expected) << name;
  }
}

TEST(S5, TruncatedNormalKeepsItsStandardDeviation) {
  Doubles x(100000);
  draw_truncated_normal<double>(x, 3, Random(1, RandomSite::initialise));
  // The standard error of the standard deviation of 100,000 draws is below 0.2 %.
  EXPECT_NEAR(standard_deviation(x), 3, 0.02);
  EXPECT_NEAR(mean(x), 0, 0.05);
  for (const double value : x) EXPECT_LE(std::abs(value), 6 / kLeft);
}

// Two samples that are held are one of twice the duration: what the zero-order hold assumes.
TEST(S5, RescaledStepsReadHalfTheSamples) {
  LayerOptions o = s5(3, 16, 2);
  DoubleLayer full(o, 4);
  o.s5.step_rescale = 2;
  DoubleLayer half(o, 4);
  const DoubleBatch batch = noise({50}, 3);
  DoubleBatch held{{0, 100}, {}, {}};
  for (size_t t = 0; t < 100; ++t) {
    held.u.insert(held.u.end(), batch.u.begin() + t / 2 * 3, batch.u.begin() + t / 2 * 3 + 3);
  }
  const Doubles y = full.forward(held).y;
  Doubles every_second;
  for (size_t t = 1; t < 100; t += 2) {
    every_second.insert(every_second.end(), y.begin() + 3 * t, y.begin() + 3 * t + 3);
  }
  EXPECT_LE(relative_error(half.forward(batch).y, every_second), 1e-12);
}

// At Λ = 0 itself, where the formula divides by it.
TEST(S5, ZeroIsAnEigenvalueLikeAnyOther) {
  DoubleLayer layer(s5(1, 2, 1));
  for (const char* name : {"Lambda_re", "Lambda_im", "B_im"}) layer.of(name)[0] = 0;
  layer.of("B_re")[0] = 1;
  layer.of("log_step")[0] = static_cast<float>(std::log(0.25));
  const double step = std::exp(static_cast<double>(layer.of("log_step")[0]));
  const DoubleBatch batch = noise({4}, 1);
  layer.forward(batch);
  const auto& s = std::get<Diagonal<double>>(layer.map(4));
  EXPECT_EQ(s.lambda_re[0], 1);
  EXPECT_EQ(s.W, (Doubles{step, 0}));
  layer.backward(batch, Doubles(4, 1));
  for (const auto& [name, gradient] : layer.gradients()) {
    for (const double x : gradient) EXPECT_TRUE(std::isfinite(x)) << name;
  }
}

}  // namespace
}  // namespace rotrnn::testing
