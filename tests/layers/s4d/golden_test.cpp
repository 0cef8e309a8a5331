// What S4D makes of its parameters, against the numbers of tests/golden/s4d.py.

#include "tests/layers/golden.h"
#include "rotrnn/kernels/oracle/convolution_reference.h"

namespace rotrnn::testing {
namespace {

TEST(S4DGolden, SystemAndKernelsAreTheScripts) {
  for (const auto& [name, c] : golden("s4d").at("cases").items()) {
    SCOPED_TRACE(name);
    GoldenCase g("s4d", c);
    const auto& s = std::get<Channel<double>>(g.layer.map(1));
    const auto D = static_cast<size_t>(s.width), N = static_cast<size_t>(s.states);
    const Complexes Lambda = complex_array(c.at("system"), "Lambda_bar");  // [D, N], as B
    const Complexes B = complex_array(c.at("system"), "B_bar");
    // The layer's planes are [N, D], and c is 2·C·B̄.
    const auto expect_plane = [&](const Complexes& actual, const auto& expected) {
      Complexes turned(actual.size());
      for (size_t i = 0; i < actual.size(); ++i) turned[i % D * N + i / D] = actual[i];
      EXPECT_LE(relative_error(turned, expected), kGolden);
    };
    expect_plane(complexes(s.lambda_re, s.lambda_im), Lambda);
    const auto expect_outputs = [&](const std::string& C, const Complexes& actual) {
      Complexes expected = complex_array(c.at("parameters"), C);
      for (size_t i = 0; i < expected.size(); ++i) expected[i] *= 2.0 * B[i];
      expect_plane(actual, expected);
    };
    expect_outputs("C", complexes(s.c_re, s.c_im));
    if (s.bidirectional()) expect_outputs("C_reverse", complexes(s.c_reverse_re, s.c_reverse_im));

    // K_l = Re Σ c λ^l, [L, D]; the script's is [D, L].
    const Doubles K_script = array(c.at("kernel"), "K");
    const size_t L = K_script.size() / D;
    const auto kernel = [&](const Complexes& outputs, const char* key) {
      Doubles K(L * D);
      for (size_t i = 0; i < N * D; ++i) {
        std::complex<double> x = outputs[i];
        for (size_t l = 0; l < L; ++l, x *= std::complex<double>(s.lambda_re[i], s.lambda_im[i])) {
          K[l * D + i % D] += x.real();
        }
      }
      const Doubles script = array(c.at("kernel"), key);
      Doubles expected(K.size());
      for (size_t i = 0; i < K.size(); ++i) expected[i % L * D + i / L] = script[i];
      EXPECT_LE(relative_error(K, expected), kGolden) << key;
      return expected;
    };
    const Doubles K = kernel(complexes(s.c_re, s.c_im), "K");
    Doubles K_reverse;
    if (s.bidirectional()) {
      K_reverse = kernel(complexes(s.c_reverse_re, s.c_reverse_im), "K_reverse");
    }
    if (c.at("input").contains("x_0")) continue;  // a convolution begins with no state
    Doubles y = kernels::reference::convolution_forward<double>(
        g.batch.sequences(), D, ProductUse::outside, {g.batch.u, K, K_reverse, {}});
    for (size_t i = 0; i < y.size(); ++i) y[i] += s.D[i % D] * g.batch.u[i];
    EXPECT_LE(relative_error(y, g.output("y")), kGolden);
  }
}

}  // namespace
}  // namespace rotrnn::testing
