// The twin of the bank of rotations, which the kernel is compared with, against the numbers of
// tests/golden/frontend.py.

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "rotrnn/kernels/oracle/rotations_reference.h"

namespace rotrnn::kernels {
namespace {

using Doubles = std::vector<double>;

nlohmann::json golden() {
  return nlohmann::json::parse(std::ifstream(ROTRNN_SOURCE "/tests/golden/frontend.json"));
}

Doubles array(const nlohmann::json& tree, const char* name) {
  return tree.at(name).at("values").get<Doubles>();
}

void expect_close(const Doubles& actual, const Doubles& expected, const char* what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  double scale = 1;
  for (const double x : expected) scale = std::max(scale, std::abs(x));
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(actual[i], expected[i], 1e-11 * scale) << what << " " << i;
  }
}

TEST(GoldenFrontend, TokensAndGradientsOfTheTwin) {
  const nlohmann::json file = golden();
  for (const auto& [name, c] : file.at("cases").items()) {
    SCOPED_TRACE(name);
    const auto& o = c.at("options");
    const auto& values = c.at("given");
    reference::RotationValues<double> v;
    v.channels = o.at("channels"), v.bands = o.at("bands"), v.hop = o.at("hop");
    v.theta = array(values, "theta"), v.gamma_log = array(values, "gamma_log");
    v.mean = array(values, "mean"), v.deviation = array(values, "deviation");
    v.x = array(values, "x");
    const auto offsets = c.at("offsets").get<std::vector<int64_t>>();
    const PackedSequences sequences{offsets.data(), offsets.size() - 1};
    FrontendOptions options;
    options.kind = FrontendKind::rotations;
    options.hop = o.at("hop");
    std::vector<int64_t> tokens;
    frontend_offsets(options, offsets.data(), std::ssize(offsets) - 1, tokens);
    expect_close(reference::rotations_forward(v, sequences, tokens.data()), array(c, "tokens"),
                 "tokens");
    const auto g =
        reference::rotations_backward(v, sequences, tokens.data(), array(c, "cotangent"));
    const auto& gradients = c.at("gradients");
    expect_close(g.theta, array(gradients, "theta"), "theta");
    expect_close(g.gamma_log, array(gradients, "gamma_log"), "gamma_log");
    expect_close(g.x, array(gradients, "x"), "x");
  }
}

TEST(GoldenFrontend, Bands) {
  const nlohmann::json file = golden();
  for (const auto& [name, c] : file.at("bands").items()) {
    SCOPED_TRACE(name);
    FrontendOptions o;
    o.kind = FrontendKind::rotations;
    o.low = c.at("options").at("low"), o.high = c.at("options").at("high");
    o.bands = c.at("options").at("bands");
    const auto r = frontend_rotations(resolve_frontend(o, c.at("options").at("rate")));
    expect_close(r.theta, array(c, "theta"), "theta");
    Doubles gamma;
    for (const double s : r.gamma_log) gamma.push_back(std::exp(-std::exp(s)));
    expect_close(gamma, array(c, "gamma"), "gamma");
  }
}

}  // namespace
}  // namespace rotrnn::kernels
