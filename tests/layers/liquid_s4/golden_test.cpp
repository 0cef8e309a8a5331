// Liquid-S4 against the numbers of tests/golden/liquid_s4.py.

#include "tests/layers/s4/golden.h"
#include "rotrnn/kernels/oracle/channel_reference.h"
#include "rotrnn/layers/liquid_s4/liquid_s4.h"

namespace rotrnn::testing {
namespace {

TEST(LiquidGolden, CoefficientsAndKernelsAreTheScripts) {
  for (const auto& [name, c] : golden("liquid_s4").at("cases").items()) {
    SCOPED_TRACE(name);
    GoldenCase g("liquid_s4", c);
    const auto& expected = c.at("derived");
    const auto& s = std::get<Channel<double>>(g.layer.map(1));
    EXPECT_LE(relative_error(s.products, array(expected, "c")), kGolden);
    expect_kernels(s, expected);
    expect_plain(system_of(g.layer), expected);
    EXPECT_LE(relative_error(convolved(s, g.batch), array(expected, "y_s4")), kGolden);
  }
}

TEST(LiquidGolden, WithoutCoefficientsItIsS4) {
  for (const auto& [name, c] : golden("liquid_s4").at("zero").items()) {
    SCOPED_TRACE(name);
    GoldenCase g("liquid_s4", c);
    const auto out = g.layer.forward(g.batch);
    const auto& s = std::get<Channel<double>>(g.layer.map(1));
    ASSERT_FALSE(s.products.empty());
    for (const double x : s.products) EXPECT_NEAR(x, 0, 1e-14);
    EXPECT_LE(relative_error(out.y, g.output("y")), kGolden);
    EXPECT_LE(relative_error(convolved(s, g.batch), g.output("y")), kGolden);
    // S4 itself, of the same values.
    LayerOptions plain = g.layer.options();
    plain.layer = "s4";
    DoubleLayer s4(plain);
    load_golden(c.at("parameters"), s4);
    s4.length() = g.layer.length();
    EXPECT_LE(relative_error(s4.forward(g.batch).y, g.output("y")), kGolden);
  }
}

TEST(LiquidGolden, StepsAreTheCausalLayer) {
  int compared = 0;
  for (const auto& [name, c] : golden("liquid_s4").at("cases").items()) {
    const auto& o = c.at("options");
    if (o.at("bidirectional") || o.at("mode") == "reference") continue;
    SCOPED_TRACE(name);
    const GoldenCase g("liquid_s4", c);
    const auto r = std::get<ChannelSteps>(
        recurrence_liquid_s4(g.layer.options(), g.layer.values(), /*outputs=*/true));
    kernels::reference::ChannelStepValues<double> v;
    v.D = static_cast<size_t>(r.width), v.N = static_cast<size_t>(r.states);
    v.degree = static_cast<size_t>(r.orders) + 1, v.inside = r.liquid_inside;
    v.lambda_re = r.lambda_re, v.lambda_im = r.lambda_im, v.c_re = r.c_re, v.c_im = r.c_im;
    v.p_re = r.p_re, v.p_im = r.p_im, v.q_re = r.q_re, v.q_im = r.q_im;
    v.b_re = r.b_re, v.b_im = r.b_im, v.products = r.liquid;
    Doubles y;
    for (size_t i = 0; i + 1 < g.batch.offsets.size(); ++i) {
      const Doubles u(g.batch.u.begin() + r.width * g.batch.offsets[i],
                      g.batch.u.begin() + r.width * g.batch.offsets[i + 1]);
      const Doubles part = kernels::reference::channel_steps(v, u);
      for (size_t k = 0; k < u.size(); ++k) y.push_back(part[k] + r.D[k % v.D] * u[k]);
    }
    EXPECT_LE(relative_error(y, g.output("y")), kGolden);
    ++compared;
  }
  EXPECT_GE(compared, 10);
}

}  // namespace
}  // namespace rotrnn::testing
