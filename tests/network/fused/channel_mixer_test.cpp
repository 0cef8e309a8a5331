#include "rotrnn/network/fused/channel_mixer.h"

#include "rotrnn/kernels/oracle/channel_reference.h"
#include "rotrnn/kernels/oracle/convolution_reference.h"
#include "tests/kernels/test_util.h"

namespace rotrnn {
namespace {

using kernels::testing::Doubles;
using kernels::testing::expect_close;
using kernels::testing::Floats;
using kernels::testing::normal;
namespace twin = kernels::reference;

template <class T>
std::vector<T> as(const Floats& v) {
  return {v.begin(), v.end()};
}

struct Problem {
  std::vector<int64_t> offsets{0, 12, 13 + 6, 120, 150};
  Channel<float> layer;
  Floats u, dy, initial, dfinal;

  kernels::Sequences sequences() const { return {offsets.data(), offsets.size() - 1}; }
  size_t D() const { return static_cast<size_t>(layer.width); }
  size_t N() const { return static_cast<size_t>(layer.states); }
};

Problem rows_of(int64_t width) {
  Problem p;
  p.layer.width = width;
  const size_t size = 150 * static_cast<size_t>(width);
  p.u = normal(size, 1);
  p.dy = normal(size, 2);
  p.layer.D = normal(static_cast<size_t>(width), 3);
  return p;
}

Problem convolution(Products kind, int64_t orders, bool both, int64_t width = 70) {
  Problem p = rows_of(width);
  p.layer.length = 110;  // more than the longest
  p.layer.kind = kind;
  p.layer.orders = orders;
  const auto D = static_cast<size_t>(width);
  p.layer.K = normal(110 * D, 4, 0.3);
  if (both) p.layer.K_reverse = normal(110 * D, 5, 0.3);
  p.layer.products = normal(static_cast<size_t>(orders) * D, 6, 0.5);
  return p;
}

/// |λ| < 1.
Problem recurrence(bool both, bool states = false) {
  Problem p = rows_of(9);
  p.layer.states = 3;
  const size_t plane = 27;
  p.layer.lambda_re = kernels::testing::uniform(plane, 7, -0.7, 0.7);
  p.layer.lambda_im = kernels::testing::uniform(plane, 8, -0.6, 0.6);
  p.layer.c_re = normal(plane, 9);
  p.layer.c_im = normal(plane, 10);
  if (both) {
    p.layer.c_reverse_re = normal(plane, 11);
    p.layer.c_reverse_im = normal(plane, 12);
  }
  if (states) {
    p.initial = normal(4 * 2 * plane, 13);
    p.dfinal = normal(4 * 2 * plane, 14);
  }
  return p;
}

/// Everything that comes out, by name.
template <class T>
using Results = std::vector<std::pair<std::string, std::vector<T>>>;

template <class T>
Results<T> by_twins(const Problem& p) {
  const Channel<float>& l = p.layer;
  Results<T> out;
  if (!l.K.empty()) {
    const twin::ConvolutionValues<T> v{as<T>(p.u), as<T>(l.K), as<T>(l.K_reverse),
                                       as<T>(l.products)};
    out.emplace_back("y", twin::convolution_forward<T>(p.sequences(), p.D(), l.kind, v));
    auto g = twin::convolution_backward<T>(p.sequences(), p.D(), l.kind, v, as<T>(p.dy));
    g.each([&](const char* name, std::vector<T>& x) { out.emplace_back(name, x); });
    return out;
  }
  twin::ChannelValues<T> v;
  v.u = as<T>(p.u), v.lambda_re = as<T>(l.lambda_re), v.lambda_im = as<T>(l.lambda_im);
  v.c_re = as<T>(l.c_re), v.c_im = as<T>(l.c_im), v.c_reverse_re = as<T>(l.c_reverse_re);
  v.c_reverse_im = as<T>(l.c_reverse_im), v.initial = as<T>(p.initial);
  const auto r = twin::channel_forward<T>(p.sequences(), p.D(), p.N(), v);
  out.emplace_back("y", r.y);
  if (!p.dfinal.empty()) out.emplace_back("final", r.final_state);
  auto g = twin::channel_backward<T>(p.sequences(), p.D(), p.N(), v, as<T>(p.dy), as<T>(p.dfinal));
  g.each([&](const char* name, std::vector<T>& x) { out.emplace_back(name, x); });
  return out;
}

Results<float> by_mixer(const Problem& p, int threads, ChannelMixer::Way way, bool keep) {
  ChannelMixer mixer(way);
  const ChannelBatch batch{p.sequences(), threads};
  const bool states = !p.initial.empty();
  Floats y(p.u.size(), NAN), du(p.u.size(), NAN), final(p.initial.size(), NAN);
  Floats dinitial(p.initial.size(), NAN), kept(mixer.kept_size(p.layer, batch), NAN);
  Channel<float> g;
  g.D = {1, 2, 3};
  const float* initial = states ? p.initial.data() : nullptr;
  float* space = keep && !kept.empty() ? kept.data() : nullptr;
  mixer.forward(p.layer, batch, {.u = p.u.data(), .initial = initial},
                {.y = y.data(), .final = states ? final.data() : nullptr, .kept = space});
  mixer.backward(p.layer, batch, {.u = p.u.data(), .initial = initial},
                 {.y = p.dy.data(), .final = states ? p.dfinal.data() : nullptr, .kept = space},
                 {.u = du.data(), .layer = &g, .initial = states ? dinitial.data() : nullptr});
  EXPECT_EQ(g.D, (Floats{1, 2, 3}));
  Results<float> out{{"y", y}};
  if (states) out.emplace_back("final", final);
  out.emplace_back("u", du);
  if (!p.layer.K.empty()) {
    out.insert(out.end(), {{"K", g.K}, {"K_reverse", g.K_reverse}, {"products", g.products}});
    return out;
  }
  out.insert(out.end(), {{"lambda_re", g.lambda_re},
                         {"lambda_im", g.lambda_im},
                         {"c_re", g.c_re},
                         {"c_im", g.c_im},
                         {"c_reverse_re", g.c_reverse_re},
                         {"c_reverse_im", g.c_reverse_im},
                         {"skip", {}},
                         {"initial", dinitial},
                         {"initial_reverse", {}}});
  return out;
}

// A direct sum in float has hardly an error where an FFT has that of its largest value.
void expect_twins(const Problem& p, ChannelMixer::Way way, bool keep = false) {
  const auto exact = by_twins<double>(p);
  const auto plain = by_twins<float>(p);
  const auto actual = by_mixer(p, 2, way, keep);
  ASSERT_EQ(actual.size(), exact.size());
  for (size_t i = 0; i < exact.size(); ++i) {
    ASSERT_EQ(actual[i].first, exact[i].first);
    expect_close(actual[i].first, actual[i].second, plain[i].second, exact[i].second,
                 2 * kernels::testing::max_value(exact[i].second));
  }
  EXPECT_EQ(actual, by_mixer(p, 1, way, !keep));
  EXPECT_EQ(actual, by_mixer(p, 3, way, keep));
}

constexpr auto kLess = ChannelMixer::Way::less_work;

TEST(ChannelMixer, ConvolutionsAreTheTwins) {
  for (const bool both : {false, true}) {
    SCOPED_TRACE(both);
    expect_twins(convolution(Products::outside, 0, both), kLess);
    for (const int64_t orders : {1, 2, 3}) {
      SCOPED_TRACE(orders);
      for (const Products kind : {Products::outside, Products::inside, Products::reference}) {
        SCOPED_TRACE(static_cast<int>(kind));
        expect_twins(convolution(kind, orders, both), kLess);
      }
    }
  }
}

TEST(ChannelMixer, RecurrencesAreTheTwinsEitherWay) {
  for (const bool both : {false, true}) {
    for (const auto way : {ChannelMixer::Way::recurrence, ChannelMixer::Way::convolution, kLess}) {
      SCOPED_TRACE(static_cast<int>(way));
      expect_twins(recurrence(both), way, /*keep=*/both);
    }
    // With states there is one way.
    expect_twins(recurrence(both, true), ChannelMixer::Way::convolution);
  }
}

TEST(ChannelMixer, AConvolutionHasNoStates) {
  Problem p = convolution(Products::outside, 0, false);
  Floats y(p.u.size()), state(1000);
  ChannelMixer mixer;
  const ChannelBatch batch{p.sequences(), 1};
  try {
    mixer.forward(p.layer, batch, {.u = p.u.data(), .initial = state.data()}, {.y = y.data()});
    FAIL();
  } catch (const std::invalid_argument& e) {
    EXPECT_STREQ(e.what(),
                 "initial state: this layer is run as a convolution, which begins with none; run "
                 "its recurrence step by step instead");
  }
  EXPECT_THROW(
      mixer.forward(p.layer, batch, {.u = p.u.data()}, {.y = y.data(), .final = state.data()}),
      std::invalid_argument);
  p.layer.length = 50;
  EXPECT_THROW(mixer.forward(p.layer, batch, {.u = p.u.data()}, {.y = y.data()}),
               std::invalid_argument);
}

TEST(ChannelMixer, ShortSequencesHaveNoReferenceProducts) {
  Problem p = convolution(Products::reference, 2, false);
  p.offsets = {0, 3, 150};
  p.layer.length = 150;
  p.layer.K = normal(150 * p.D(), 4);
  Floats y(p.u.size());
  try {
    ChannelMixer().forward(p.layer, {p.sequences(), 2}, {.u = p.u.data()}, {.y = y.data()});
    FAIL();
  } catch (const std::invalid_argument& e) {
    EXPECT_STREQ(e.what(),
                 "Liquid-S4: a sequence of 3 tokens is too short for products of 2 inputs in mode "
                 "\"reference\"; use mode = \"causal\", a smaller degree, or longer sequences");
  }
}

}  // namespace
}  // namespace rotrnn
