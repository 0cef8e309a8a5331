#include "rotrnn/kernels/recurrence/channel_step.h"

#include "rotrnn/kernels/block/step.h"
#include "rotrnn/kernels/oracle/channel_reference.h"
#include "tests/kernels/test_util.h"

namespace rotrnn::kernels::testing {
namespace {

using reference::ChannelStepValues;

struct Options {
  size_t D = 19, N = 5;
  bool rank = true, b = true, bidirectional = false, inside = false;
  size_t degree = 1;
};

ChannelStepValues<float> make_values(const Options& o, uint64_t seed) {
  ChannelStepValues<float> v;
  v.D = o.D, v.N = o.N, v.degree = o.degree, v.inside = o.inside;
  const size_t count = o.D * o.N;
  seed *= 1000;
  const Floats radius = uniform(count, ++seed, 0.5, 0.97), angle = uniform(count, ++seed, 0, 3);
  for (size_t i = 0; i < count; ++i) {
    v.lambda_re.push_back(radius[i] * std::cos(angle[i]));
    v.lambda_im.push_back(radius[i] * std::sin(angle[i]));
  }
  const auto draw = [&](Floats& re, Floats& im, double scale) {
    re = normal(count, ++seed, scale), im = normal(count, ++seed, scale);
  };
  draw(v.c_re, v.c_im, 1);
  if (o.bidirectional) draw(v.c_reverse_re, v.c_reverse_im, 1);
  if (o.rank) {  // small enough for the eigenvalues to stay within the circle
    draw(v.p_re, v.p_im, 0.05 / static_cast<double>(o.N));
    draw(v.q_re, v.q_im, 0.2);
  }
  if (o.b) draw(v.b_re, v.b_im, 1);
  if (o.degree > 1) v.products = normal((o.degree - 1) * o.D, ++seed, 0.3);
  return v;
}

ChannelStepValues<double> widen_all(const ChannelStepValues<float>& v) {
  return {v.D,
          v.N,
          v.degree,
          v.inside,
          widen(v.lambda_re),
          widen(v.lambda_im),
          widen(v.c_re),
          widen(v.c_im),
          widen(v.c_reverse_re),
          widen(v.c_reverse_im),
          widen(v.p_re),
          widen(v.p_im),
          widen(v.q_re),
          widen(v.q_im),
          widen(v.b_re),
          widen(v.b_im),
          widen(v.products)};
}

ChannelStepLayer layer_of(const ChannelStepValues<float>& v) {
  const auto data = [](const Floats& f) { return f.empty() ? nullptr : f.data(); };
  ChannelStepLayer p;
  p.width = static_cast<int64_t>(v.D), p.states = static_cast<int64_t>(v.N);
  p.orders = static_cast<int64_t>(v.degree) - 1, p.liquid_inside = v.inside;
  p.lambda_re = data(v.lambda_re), p.lambda_im = data(v.lambda_im);
  p.c_re = data(v.c_re), p.c_im = data(v.c_im);
  p.c_reverse_re = data(v.c_reverse_re), p.c_reverse_im = data(v.c_reverse_im);
  p.p_re = data(v.p_re), p.p_im = data(v.p_im), p.q_re = data(v.q_re), p.q_im = data(v.q_im);
  p.b_re = data(v.b_re), p.b_im = data(v.b_im), p.liquid = data(v.products);
  return p;
}

std::vector<Options> variety() {
  std::vector<Options> all;
  for (size_t D : {1, 16, 37}) {
    for (size_t N : {1, 2, 7, 32}) {
      for (bool rank : {false, true}) {
        for (bool b : {false, true}) {
          const size_t degree = 1 + (D + N + rank + b) % 4;
          all.push_back({D, N, rank, b, false, N % 2 == 0, degree});
          all.push_back({D, N, rank, b, true, N % 2 == 1, 1 + degree % 4});
        }
      }
    }
  }
  return all;
}

class ChannelStep : public ::testing::TestWithParam<size_t> {};
INSTANTIATE_TEST_SUITE_P(All, ChannelStep, ::testing::Range<size_t>(0, variety().size()));

constexpr size_t kSteps = 143;

/// y in chunks of these sizes, one after the other.
Floats run_chunks(const ChannelStepper& steps, const Floats& u, size_t D,
                  const std::vector<size_t>& sizes) {
  AlignedFloats state(steps.state_size(), 0.0f), scratch(steps.scratch(kSteps));
  const StepState s{state.data(), false};
  Floats y(u.size(), NAN);
  size_t at = 0;
  for (size_t i = 0; at < kSteps; ++i) {
    const size_t rows = std::min(sizes[i % sizes.size()], kSteps - at);
    steps.run(u.data() + at * D, rows, &s, 1, y.data() + at * D, scratch.data());
    at += rows;
  }
  return y;
}

TEST_P(ChannelStep, MatchesTheOracleInChunksOfAnySize) {
  Options o = variety()[GetParam()];
  o.bidirectional = false;
  const auto values = make_values(o, GetParam() + 1);
  const Floats u = normal(kSteps * o.D, 77);
  const auto exact = reference::channel_steps(widen_all(values), widen(u));
  const auto plain = reference::channel_steps(values, u);
  for_each_target([&] {
    Arena memory;
    const ChannelStepper steps(layer_of(values), memory);
    EXPECT_GE(steps.state_size(), 2 * o.D * o.N + (o.degree - 1) * o.D);
    for (const auto& sizes :
         std::vector<std::vector<size_t>>{{1}, {2}, {kSteps}, {7, 1, 64}, {3, 2, 1, 1, 20}}) {
      expect_close("y", run_chunks(steps, u, o.D, sizes), plain, exact);
    }
  });
}

TEST_P(ChannelStep, WholeSequencesMatchTheOracle) {
  const Options o = variety()[GetParam()];
  const auto values = make_values(o, GetParam() + 1);
  const Floats u = normal(kSteps * o.D, 78);
  const auto exact = reference::channel_steps(widen_all(values), widen(u));
  const auto plain = reference::channel_steps(values, u);
  for_each_target([&] {
    Arena memory;
    const ChannelStepper steps(layer_of(values), memory);
    EXPECT_EQ(steps.bidirectional(), o.bidirectional);
    for (const size_t tile : {1, 48, 200}) {
      AlignedFloats scratch(steps.sequence_scratch(tile), NAN);
      Floats y(u.size(), NAN);
      for (size_t g = 0; g < steps.groups(); ++g) {
        steps.sequence(g, u.data(), kSteps, tile, y.data(), scratch.data());
      }
      expect_close("tiles of " + std::to_string(tile), y, plain, exact);
    }
  });
}

TEST(ChannelStepper, OfManyStreamsAreThoseOfEach) {
  const Options o{21, 6, true, true, false, true, 3};
  const auto values = make_values(o, 5);
  const Floats u = normal(kSteps * o.D, 79);
  for_each_target([&] {
    Arena memory;
    const ChannelStepper steps(layer_of(values), memory);
    const Floats alone = run_chunks(steps, u, o.D, {1});
    // Stream i begins at the i-th step of u; theirs are what a stream that begins there gives.
    constexpr size_t kStreams = 5, kTogether = 20;
    std::vector<AlignedFloats> states(kStreams, AlignedFloats(steps.state_size(), 0.0f));
    std::vector<StepState> pointers;
    for (AlignedFloats& s : states) pointers.push_back({s.data(), false});
    AlignedFloats scratch(steps.scratch(kStreams));
    Floats y(kStreams * o.D);
    for (size_t t = 0; t < kTogether; ++t) {
      steps.run(u.data() + t * o.D, kStreams, pointers.data(), kStreams, y.data(), scratch.data());
      EXPECT_EQ(Floats(y.begin(), y.begin() + static_cast<ptrdiff_t>(o.D)),
                Floats(alone.begin() + static_cast<ptrdiff_t>(t * o.D),
                       alone.begin() + static_cast<ptrdiff_t>((t + 1) * o.D)));
    }
    const Floats later(u.begin() + static_cast<ptrdiff_t>(3 * o.D), u.end());
    Floats padded = later;
    padded.resize(u.size());
    const Floats fourth = run_chunks(steps, padded, o.D, {1});
    for (size_t d = 0; d < o.D; ++d) {
      EXPECT_EQ(y[3 * o.D + d], fourth[(kTogether - 1) * o.D + d]) << d;
    }
  });
}

}  // namespace
}  // namespace rotrnn::kernels::testing
