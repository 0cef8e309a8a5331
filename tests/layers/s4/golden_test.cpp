// S4 against the numbers of tests/golden/s4.py: kernels, C, lengths, steps, initial values.

#include "tests/layers/s4/golden.h"

#include "rotrnn/layers/s4/s4.h"

namespace rotrnn::testing {
namespace {

/// f(case, json) for all cases of a part of the file.
template <class F>
void for_cases(const char* part, const F& f) {
  int seen = 0;
  for (const auto& [name, c] : golden("s4").at(part).items()) {
    SCOPED_TRACE(name);
    GoldenCase g("s4", c);
    f(g, c);
    ++seen;
  }
  EXPECT_GE(seen, 3);
}

// As the layer grows, but in double: C̃ ← C̃(1 + Ā^L).
S4System grown(S4System s, int64_t longest) {
  for (; s.length < longest; s.length *= 2) {
    const auto moved = times_power(s.dplr, s.vectors.outputs, s.length);
    for (size_t i = 0; i < moved.size(); ++i) s.vectors.outputs[i] += moved[i];
  }
  return s;
}

Channel<double> channel_of(const S4System& s, std::span<const float> skip) {
  Channel<double> out;
  out.width = s.dplr.width();
  out.length = s.length;
  out.D.assign(skip.begin(), skip.end());
  out.K.resize(static_cast<size_t>(s.length * out.width));
  if (s.vectors.outputs.size() > 1) out.K_reverse.resize(out.K.size());
  dplr_kernels(s.dplr, s.vectors, s.length, 2, s4_kernels(out));
  return out;
}

// Layers keep C̃ in float32, and round it at every growth.
constexpr double kRounded = 2 * 0x1p-24;

TEST(S4Golden, KernelsAreTheScripts) {
  for_cases("cases", [](GoldenCase& g, const auto& c) {
    expect_kernels(std::get<Channel<double>>(g.layer.map(1)), c.at("kernel"));
  });
}

TEST(S4Golden, PlainOutputsAreTheScripts) {
  for_cases("cases",
            [](GoldenCase& g, const auto& c) { expect_plain(system_of(g.layer), c.at("plain")); });
}

TEST(S4Golden, TheDoubledLayerIsTheSameOne) {
  for_cases("cases", [](GoldenCase& g, const auto& c) {
    const auto& doubled = c.at("doubled");
    const S4System s = grown(system_of(g.layer), g.layer.length() + 1);
    EXPECT_EQ(s.length, doubled.at("L").template get<int64_t>());
    expect_outputs(s.vectors.outputs, doubled);
    expect_kernels(channel_of(s, g.layer.of("D")), doubled);
    expect_plain(s, c.at("plain"));
    g.layer.map(g.layer.length() + 1);
    EXPECT_EQ(g.layer.length(), s.length);
    expect_outputs(system_of(g.layer).vectors.outputs, doubled, kRounded);
  });
}

TEST(S4Golden, LongerSequencesDoubleIt) {
  for_cases("longer", [](GoldenCase& g, const auto& c) {
    const int64_t longest = longest_of(g.batch.offsets);
    const S4System s = grown(system_of(g.layer), longest);
    EXPECT_EQ(s.length, c.at("doubled").at("L").template get<int64_t>());
    expect_outputs(s.vectors.outputs, c.at("doubled"));
    EXPECT_LE(relative_error(convolved(channel_of(s, g.layer.of("D")), g.batch), g.output("y")),
              kGolden);
    // By the layer itself. A rounding of C̃ is one of the kernel: a few of them may add up.
    EXPECT_LE(relative_error(g.layer.forward(g.batch).y, g.output("y")), 1e-6);
    EXPECT_EQ(g.layer.length(), s.length);
  });
}

// From C itself the first length makes what it would have been at the start; many states take the
// way step by step, few that of dense matrices.
TEST(S4Golden, TheFirstLengthMakesTheTrainedOutputs) {
  for_cases("cases", [](GoldenCase& g, const auto& c) {
    const S4System s = system_of(g.layer);
    std::vector<ComplexRows> C{rows_of(c.at("plain"), "C", s.dplr.width())};
    if (s.vectors.outputs.size() > 1) {
      C.push_back(rows_of(c.at("plain"), "C_reverse", s.dplr.width()));
    }
    const auto moved = times_power(s.dplr, C, s.length);
    for (size_t i = 0; i < C.size(); ++i) C[i] -= moved[i];
    expect_outputs(C, c.at("parameters"));

    // By the layer itself, which rounds C before and C̃ after.
    for (const auto& [key, value] : c.at("plain").items()) {
      const std::vector<float> rounded = as<float>(array(c.at("plain"), key));
      std::copy(rounded.begin(), rounded.end(), g.layer.of(key).begin());
    }
    g.layer.length() = 0;
    g.layer.map(s.length);
    EXPECT_EQ(g.layer.length(), s.length);
    expect_outputs(system_of(g.layer).vectors.outputs, c.at("parameters"), 1e-6);
  });
}

TEST(S4Golden, ManyStatesStepByStepAndDenseAgree) {
  const int64_t D = 2, n = 40;
  const auto numbers = [&](uint64_t seed, double re, double im) {
    const Doubles x = normal(2 * D * n, seed);
    ComplexRows out(D, n);
    for (int64_t i = 0; i < D * n; ++i) out.data()[i] = {re * x[2 * i], im * x[2 * i + 1]};
    return out;
  };
  DplrMatrix s{numbers(1, 0.3, 10), numbers(2, 0.7, 0.7), Eigen::ArrayXd::Constant(D, 0.05)};
  for (int64_t i = 0; i < D * n; ++i) {
    s.Lambda.data()[i] = {-0.5 - std::abs(s.Lambda.data()[i].real()), s.Lambda.data()[i].imag()};
  }
  const std::vector<ComplexRows> C{numbers(3, 0.7, 0.7)};
  const int64_t length = 64;  // 64·45 < 1600·6: step by step
  // plain_output knows dense matrices only: from C(1 - Ā^L) back to C.
  const auto back = plain_output(s, {C[0] - times_power(s, C, length)[0]}, length);
  EXPECT_LE(relative_error(flat(back[0]), flat(C[0])), kGolden);
}

TEST(S4Golden, StepsAreTheScripts) {
  for_cases("cases", [](GoldenCase& g, const auto& c) {
    const auto& expected = c.at("step");
    const auto r = std::get<ChannelSteps>(
        recurrence_s4(g.layer.options(), g.layer.values(), /*outputs=*/true));
    const auto D = static_cast<size_t>(r.width), n = static_cast<size_t>(r.states);
    const Complexes lambda = complexes(r.lambda_re, r.lambda_im), p = complexes(r.p_re, r.p_im);
    const Complexes q = complexes(r.q_re, r.q_im), b = complexes(r.b_re, r.b_im);
    const Complexes C = complexes(r.c_re, r.c_im);
    const Complexes D0 = complex_array(expected, "D0"), E = complex_array(expected, "E");
    const Complexes R = complex_array(expected, "R");
    Complexes D0E, q_script;
    for (size_t i = 0; i < D * n; ++i) {
      const double step = std::exp(static_cast<double>(g.layer.of("log_step")[i / n]));
      D0E.push_back(D0[i] * E[i]);
      q_script.push_back(2.0 * 4.0 / step * R[i]);
    }
    EXPECT_LE(relative_error(lambda, D0E), kGolden);
    EXPECT_LE(relative_error(q, q_script), kGolden);

    const Doubles y_script = array(expected, "y");
    const Complexes x_script = complex_array(expected, "x");  // [steps, D, n]
    Complexes x(D * n), states;
    Doubles y;
    for (size_t t = 0; t < y_script.size() / D; ++t) {
      for (size_t d = 0; d < D; ++d) {
        const double u = g.batch.u[t * D + d];
        double joined = 0, out = r.D[d] * u;
        for (size_t i = d * n; i < (d + 1) * n; ++i) joined += (q[i] * x[i]).real();
        for (size_t i = d * n; i < (d + 1) * n; ++i) {
          x[i] = lambda[i] * x[i] + p[i] * joined + b[i] * u;
          out += (C[i] * x[i]).real();
        }
        y.push_back(out);
      }
      states.insert(states.end(), x.begin(), x.end());
    }
    EXPECT_LE(relative_error(y, y_script), kGolden);
    EXPECT_LE(relative_error(states, x_script), kGolden);
  });
}

TEST(ChannelInit, StartsAsTheScripts) {
  LayerOptions o;
  o.width = 3;
  o.layer = "s4d";
  for (const auto& [init, sizes] : golden("s4d").at("init").items()) {
    for (const auto& [size, c] : sizes.items()) {
      SCOPED_TRACE("S4D " + init + " " + size);
      o.state = std::stoll(size);
      o.s4d.init = init == "lin" ? S4DInit::lin : init == "inv" ? S4DInit::inv : S4DInit::legs;
      expect_init(c, o);
    }
  }
  o.s4.max_length = 5;
  for (const char* layer : {"s4", "liquid_s4"}) {
    o.layer = layer;
    for (const auto& [size, c] : golden(layer).at("init").items()) {
      SCOPED_TRACE(o.layer + " " + size);
      o.state = std::stoll(size);
      expect_init(c, o);
    }
  }
}

}  // namespace
}  // namespace rotrnn::testing
