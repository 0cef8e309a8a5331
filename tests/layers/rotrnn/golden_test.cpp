// RotRNN against numbers made by tests/golden/rotrnn.py, which knows only the paper: states in its
// coordinates, gradients, and the LRU form.

#include "tests/layers/golden.h"
#include "rotrnn/kernels/maps/expm.h"
#include "rotrnn/layers/rotrnn/coordinates.h"
#include "rotrnn/layers/rotrnn/to_lru.h"
#include "tests/layers/rotrnn/oracle.h"

namespace rotrnn::testing {
namespace {

class RotrnnGolden : public ::testing::TestWithParam<std::string> {
 protected:
  RotrnnGolden() {
    const Doubles x_0 = g.input("x_0");
    if (!x_0.empty()) g.batch.initial.forward = rotrnn_folded(options(), g.layer.values(), x_0);
  }

  const LayerOptions& options() const { return g.layer.options(); }
  Doubles hidden(const Doubles& z) const { return rotrnn_hidden(options(), g.layer.values(), z); }

  GoldenCase g{"rotrnn", golden("rotrnn").at("cases").at(GetParam())};
};

TEST_P(RotrnnGolden, FoldedFormGivesThePapersOutputs) {
  const auto out = g.layer.forward(g.batch);
  const Doubles x = hidden(out.z);
  EXPECT_LE(relative_error(out.y, g.output("y")), kGolden);
  EXPECT_LE(relative_error(x, g.output("x")), kGolden);
  EXPECT_LE(relative_error(hidden(out.final.forward), g.output("x_T")), kGolden);
  EXPECT_LE(relative_error(head_norms(g.layer, out.z), g.output("head_norms")), kGolden);
  EXPECT_LE(relative_error(rotrnn_folded(options(), g.layer.values(), x), out.z), kGolden);
}

TEST_P(RotrnnGolden, UnfoldedOracleGivesThePapersOutputs) {
  const auto out = oracle::run<double>(g.layer, g.batch, g.input("x_0"));
  EXPECT_LE(relative_error(out.y, g.output("y")), kGolden);
  EXPECT_LE(relative_error(out.x, g.output("x")), kGolden);
}

// What of M's gradient comes by way of z_0 = Pᵀx_0.
void add_gradient_of_start(const DoubleLayer& layer, const Doubles& x_0, const Doubles& dz_0) {
  const auto H = static_cast<size_t>(layer.options().rotrnn.heads);
  const auto N = static_cast<size_t>(layer.options().state), dh = N / H, pairs = (dh + 1) / 2;
  const std::span<const float> M = layer.of("M");
  const std::span<double> dM = layer.gradient("M");
  for (size_t h = 0; h < H; ++h) {
    Doubles A(dh * dh), dP(dh * dh), dA(dh * dh);
    for (size_t i = 0; i < dh; ++i) {
      for (size_t j = 0; j < dh; ++j) {
        const auto at = [&](size_t a, size_t b) {
          return static_cast<double>(M[(h * dh + a) * dh + b]);
        };
        A[i * dh + j] = at(i, j) - at(j, i);
        const size_t column = j % 2 * H * pairs + h * pairs + j / 2;
        for (size_t s = 0; s < x_0.size() / N; ++s) {
          dP[i * dh + j] += x_0[s * N + h * dh + i] * dz_0[s * 2 * H * pairs + column];
        }
      }
    }
    kernels::expm_skew_backward(A.data(), dP.data(), dA.data(), dh);
    for (size_t i = 0; i < dh * dh; ++i) {
      dM[h * dh * dh + i] += dA[i] - dA[i % dh * dh + i / dh];
    }
  }
}

using RotrnnGradients = RotrnnGolden;

TEST_P(RotrnnGradients, AreThePapers) {
  const auto& expected = g.c.at("gradients");
  g.layer.forward(g.batch);
  const auto back = g.layer.backward(g.batch, g.input("G"));
  const Doubles x_0 = g.input("x_0");
  if (!x_0.empty()) add_gradient_of_start(g.layer, x_0, back.initial.forward);
  size_t compared = 0;
  const auto compare = [&](const std::string& name, const auto& gradient) {
    // The floor is for gradients that are zero in theory (M when dh = 2).
    EXPECT_LE(relative_error(gradient, array(expected, name), 1.0), kGolden) << name;
    ++compared;
  };
  for (const auto& [name, gradient] : g.layer.gradients()) compare(name, gradient);
  compare("u", back.u);
  if (!x_0.empty()) compare("x_0", hidden(back.initial.forward));
  EXPECT_EQ(compared, expected.size());
}

std::vector<std::string> case_names(bool with_gradients) {
  std::vector<std::string> names;
  for (const auto& [name, value] : golden("rotrnn").at("cases").items()) {
    if (!with_gradients || !value.at("gradients").empty()) names.push_back(name);
  }
  return names;
}

std::string test_name(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Cases, RotrnnGolden, ::testing::ValuesIn(case_names(false)), test_name);
INSTANTIATE_TEST_SUITE_P(Cases, RotrnnGradients, ::testing::ValuesIn(case_names(true)), test_name);

TEST(ToLru, ParametersAreTheScripts) {
  int compared = 0;
  for (const auto& [name, lru] : golden("rotrnn").at("lru").items()) {
    const GoldenCase g("rotrnn", golden("rotrnn").at("cases").at(name));
    const auto& expected = lru.at("parameters");
    to_lru(g.layer.options(), g.layer.values()).each([&](const char* key, const Doubles& values) {
      if (values.empty()) return;
      EXPECT_LE(relative_error(values, array(expected, key)), kGolden) << name << " " << key;
      ++compared;
    });
  }
  EXPECT_EQ(compared, 8 + 8 + 10);
}

}  // namespace
}  // namespace rotrnn::testing
