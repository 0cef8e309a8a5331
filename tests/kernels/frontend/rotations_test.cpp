#include "rotrnn/kernels/frontend/rotations.h"

#include <functional>

#include "rotrnn/kernels/oracle/rotations_reference.h"
#include "rotrnn/spec/frontend.h"
#include "tests/kernels/test_util.h"

namespace rotrnn::kernels::testing {
namespace {

template <class T>
using Values = reference::RotationValues<T>;

struct Case {
  size_t channels, bands, hop;
  std::vector<int64_t> lengths;

  FrontendOptions options() const {
    FrontendOptions o;
    o.kind = FrontendKind::rotations;
    o.hop = static_cast<int64_t>(hop);
    o.bands = static_cast<int64_t>(bands);
    return resolve_frontend(o, 0);
  }
};

// Around a vector and a group of vectors of every instruction set; hops of one sample, hops longer
// than a sequence, sequences that end within a hop.
std::vector<Case> cases() {
  return {{1, 64, 160, {1600, 160, 159, 161, 1}},
          {1, 1, 1, {5, 1}},
          {1, 17, 7, {40, 7, 6, 100}},
          {3, 5, 4, {12, 3, 21}},
          {2, 48, 33, {99, 500}},
          {5, 16, 10, {64, 10, 9}},
          {1, 100, 20, {3}}};
}

struct Batch {
  std::vector<int64_t> offsets{0}, tokens;
  Values<float> values;
  Floats dtokens;

  PackedSequences sequences() const { return {offsets.data(), offsets.size() - 1}; }
  size_t count() const { return static_cast<size_t>(tokens.back()); }
  RotationParameters parameters() const {
    const Values<float>& v = values;
    return {v.channels,    v.bands,           v.hop, v.theta.data(), v.gamma_log.data(),
            v.mean.data(), v.deviation.data()};
  }
};

Batch make_batch(const Case& c, uint64_t seed) {
  Batch b;
  for (const int64_t length : c.lengths) b.offsets.push_back(b.offsets.back() + length);
  frontend_offsets(c.options(), b.offsets.data(), std::ssize(c.lengths), b.tokens);
  Values<float>& v = b.values;
  v.channels = c.channels, v.bands = c.bands, v.hop = c.hop;
  const FrontendRotations r = frontend_rotations(c.options());
  v.theta.assign(r.theta.begin(), r.theta.end());
  v.gamma_log.assign(r.gamma_log.begin(), r.gamma_log.end());
  v.mean = normal(c.channels * c.bands, seed);
  v.deviation = uniform(c.channels * c.bands, seed + 1, 0.5, 2);
  v.x = normal(static_cast<size_t>(b.offsets.back()) * c.channels, seed + 2);
  b.dtokens = normal(b.count() * c.channels * c.bands, seed + 3);
  return b;
}

Values<double> in_double(const Values<float>& v) {
  return {v.channels,         v.bands,   v.hop, widen(v.theta), widen(v.gamma_log), widen(v.mean),
          widen(v.deviation), widen(v.x)};
}

struct Answer {
  Floats tokens, theta, gamma_log, x;
};

Answer run(const Batch& b, int threads, bool input) {
  Arena memory, scratch;
  const RotationBank bank(b.parameters(), memory);
  Answer a;
  a.tokens.assign(b.dtokens.size(), NAN);
  AlignedFloats kept(b.count() * bank.kept_size());
  rotations_forward(bank, b.sequences(), b.tokens.data(), b.values.x.data(), a.tokens.data(),
                    kept.data(), threads);
  Doubles theta(bank.bands()), gamma_log(bank.bands());
  if (input) a.x.assign(b.values.x.size(), NAN);
  rotations_backward(
      bank, b.sequences(), b.tokens.data(), b.values.x.data(), kept.data(), b.dtokens.data(),
      {theta.data(), gamma_log.data(), input ? a.x.data() : nullptr}, threads, scratch);
  a.theta.assign(theta.begin(), theta.end());
  a.gamma_log.assign(gamma_log.begin(), gamma_log.end());
  return a;
}

class Rotations : public ::testing::TestWithParam<size_t> {};
INSTANTIATE_TEST_SUITE_P(Cases, Rotations, ::testing::Range<size_t>(0, 7));

TEST_P(Rotations, MatchTheOracleForwardAndBackward) {
  const Batch b = make_batch(cases()[GetParam()], GetParam() + 1);
  const int64_t* tokens = b.tokens.data();
  const Values<double> v = in_double(b.values);
  const auto exact = reference::rotations_forward(v, b.sequences(), tokens);
  const auto plain = reference::rotations_forward(b.values, b.sequences(), tokens);
  const auto dexact = reference::rotations_backward(v, b.sequences(), tokens, widen(b.dtokens));
  const auto dplain = reference::rotations_backward(b.values, b.sequences(), tokens, b.dtokens);
  for_each_target([&] {
    const Answer a = run(b, 2, true);
    expect_close("tokens", a.tokens, plain, exact);
    expect_close("theta", a.theta, dplain.theta, dexact.theta);
    expect_close("gamma_log", a.gamma_log, dplain.gamma_log, dexact.gamma_log);
    expect_close("x", a.x, dplain.x, dexact.x);
    EXPECT_EQ(run(b, 2, false).theta, a.theta);  // whether or not dx is wanted
  });
}

TEST_P(Rotations, ThreadsDoNotChangeABit) {
  const Batch b = make_batch(cases()[GetParam()], GetParam() + 20);
  for_each_target([&] {
    const Answer one = run(b, 1, true), three = run(b, 3, true);
    EXPECT_EQ(one.tokens, three.tokens);
    EXPECT_EQ(one.theta, three.theta);
    EXPECT_EQ(one.gamma_log, three.gamma_log);
    EXPECT_EQ(one.x, three.x);
  });
}

TEST_P(Rotations, AStreamInAnyPortionsGivesTheBitsOfABatch) {
  const Case c = cases()[GetParam()];
  const Batch b = make_batch(c, GetParam() + 40);
  for_each_target([&] {
    const Answer batch = run(b, 1, false);
    Arena memory;
    const RotationBank bank(b.parameters(), memory);
    for (const auto& portions : std::vector<std::vector<size_t>>{{1}, {2}, {7, 1, 64}, {10000}}) {
      for (size_t i = 0; i < c.lengths.size(); ++i) {
        AlignedFloats planes(bank.state_size(), 0.0f);
        RotationState state{planes.data(), 0};
        const size_t first = static_cast<size_t>(b.tokens[i]) * bank.outputs();
        const size_t last = static_cast<size_t>(b.tokens[i + 1]) * bank.outputs();
        Floats out(last - first, NAN);
        size_t at = 0, done = 0;
        const auto length = static_cast<size_t>(c.lengths[i]);
        for (size_t k = 0; at < length; ++k) {
          const size_t count = std::min(portions[k % portions.size()], length - at);
          const float* x =
              b.values.x.data() + (static_cast<size_t>(b.offsets[i]) + at) * bank.channels();
          done += bank.run(x, count, state, out.data() + done * bank.outputs());
          at += count;
        }
        if (done == 0) bank.partial(state, out.data());
        EXPECT_EQ(out, Floats(batch.tokens.begin() + static_cast<ptrdiff_t>(first),
                              batch.tokens.begin() + static_cast<ptrdiff_t>(last)))
            << "sequence " << i << " in portions of " << portions[0];
      }
    }
  });
}

// The twin itself: its gradients are those of differences.
TEST_P(Rotations, GradientsOfTheTwinAreDifferences) {
  const Batch b = make_batch(cases()[GetParam()], GetParam() + 60);
  Values<double> v = in_double(b.values);
  const Doubles dy = widen(b.dtokens);
  const auto loss = [&] {
    const auto y = reference::rotations_forward(v, b.sequences(), b.tokens.data());
    double sum = 0;
    for (size_t i = 0; i < y.size(); ++i) sum += y[i] * dy[i];
    return sum;
  };
  const auto g = reference::rotations_backward(v, b.sequences(), b.tokens.data(), dy);
  const auto check = [&](const char* name, Doubles& p, const Doubles& gradient) {
    for (const size_t i : {size_t{0}, p.size() / 2, p.size() - 1}) {
      const double was = p[i], step = 1e-5 * std::max(0.1, std::abs(was));
      p[i] = was + step;
      const double above = loss();
      p[i] = was - step;
      const double below = loss();
      p[i] = was;
      const double slope = (above - below) / (2 * step);
      EXPECT_NEAR(gradient[i], slope, 1e-6 * std::max(1.0, max_value(gradient))) << name << i;
    }
  };
  check("theta", v.theta, g.theta);
  check("gamma_log", v.gamma_log, g.gamma_log);
  check("x", v.x, g.x);
}

// Silence and loud noise: the logarithm over the whole range of powers, within two roundings.
TEST(RotationTokens, LogarithmsAreRight) {
  for_each_target([&] {
    for (double power = 1e-7; power < 1e30; power *= 1.37) {
      AlignedFloats sum(kBands, static_cast<float>(power)), one(kBands, 1.0f), zero(kBands, 0.0f);
      Floats out(3, NAN);
      table().rotation_token(sum.data(), one.data(), 1, 0, zero.data(), one.data(), out.data(), 3);
      const double exact = std::log(static_cast<double>(sum[0]));
      for (const float x : out) EXPECT_NEAR(x, exact, 1.2e-7 * std::max(1.0, std::abs(exact)));
    }
    AlignedFloats bad(kBands, NAN), one(kBands, 1.0f), zero(kBands, 0.0f);
    bad[1] = INFINITY;
    Floats out(3);
    table().rotation_token(bad.data(), one.data(), 1, 0, zero.data(), one.data(), out.data(), 3);
    EXPECT_TRUE(std::isnan(out[0]) && std::isnan(out[1]));
  });
}

// A tone in the middle of a band has half its power there: the gain of the rotation at its own
// frequency is ξ/(1 - γ), to one of the two halves of a cosine.
TEST(RotationTokens, AToneIsFoundInItsBand) {
  Case c{1, 64, 1000, {4000}};
  Batch b = make_batch(c, 3);
  std::fill(b.values.mean.begin(), b.values.mean.end(), 0.0f);
  std::fill(b.values.deviation.begin(), b.values.deviation.end(), 1.0f);
  constexpr size_t kBand = 40;
  const double theta = static_cast<double>(b.values.theta[kBand]);
  for (size_t t = 0; t < b.values.x.size(); ++t) {
    b.values.x[t] = static_cast<float>(std::cos(theta * static_cast<double>(t)));
  }
  const Answer a = run(b, 1, false);
  const float* last = a.tokens.data() + 3 * 64;
  EXPECT_EQ(std::max_element(last, last + 64) - last, kBand);
  const double gamma = std::exp(-std::exp(static_cast<double>(b.values.gamma_log[kBand])));
  EXPECT_NEAR(last[kBand], std::log((1 + gamma) / (1 - gamma) / 4), 0.02);
}

TEST(Rotations, NoSequences) {
  Batch b = make_batch({1, 8, 4, {4}}, 1);
  b.offsets = {0}, b.tokens = {0};
  b.values.x.clear(), b.dtokens.clear();
  const Answer a = run(b, 2, true);
  EXPECT_EQ(a.theta, Floats(8, 0.0f));
}

}  // namespace
}  // namespace rotrnn::kernels::testing
