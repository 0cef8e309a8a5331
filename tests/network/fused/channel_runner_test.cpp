#include "rotrnn/network/fused/channel_runner.h"

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

  kernels::PackedSequences sequences() const { return {offsets.data(), offsets.size() - 1}; }
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

Problem convolution(ProductUse kind, int64_t orders, bool both, int64_t width = 70) {
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

Results<float> by_runner(const Problem& p, int threads, ChannelRunner::Way way, bool keep) {
  ChannelRunner runner(way);
  const ChannelBatch batch{p.sequences(), threads};
  const bool states = !p.initial.empty();
  Floats y(p.u.size(), NAN), du(p.u.size(), NAN), final(p.initial.size(), NAN);
  Floats dinitial(p.initial.size(), NAN), kept(runner.kept_size(p.layer, batch), NAN);
  Channel<float> g;
  g.D = {1, 2, 3};
  const float* initial = states ? p.initial.data() : nullptr;
  float* space = keep && !kept.empty() ? kept.data() : nullptr;
  runner.forward(p.layer, batch, {.u = p.u.data(), .initial = initial},
                 {.y = y.data(), .final = states ? final.data() : nullptr, .kept = space});
  runner.backward(p.layer, batch, {.u = p.u.data(), .initial = initial},
                  {.y = p.dy.data(), .final = states ? p.dfinal.data() : nullptr, .kept = space},
                  {.u = du.data(), .layer = &g, .initial = states ? dinitial.data() : nullptr});
  EXPECT_EQ(g.D, (Floats{1, 2, 3}));
  Results<float> out{{"y", y}};
  if (states) out.emplace_back("final", final);
  if (!p.layer.K.empty()) {
    out.insert(out.end(),
               {{"u", du}, {"K", g.K}, {"K_reverse", g.K_reverse}, {"products", g.products}});
    return out;
  }
  g.D.clear();  // not the runner's
  g.each([&](const char* name, const Floats& values, auto) { out.emplace_back(name, values); });
  out.insert(out.end(), {{"u", du}, {"initial", dinitial}, {"initial_reverse", {}}});
  return out;
}

// A direct sum in float has hardly an error where an FFT has that of its largest value.
void expect_twins(const Problem& p, ChannelRunner::Way way, bool keep = false) {
  const auto exact = by_twins<double>(p);
  const auto plain = by_twins<float>(p);
  const auto actual = by_runner(p, 2, way, keep);
  ASSERT_EQ(actual.size(), exact.size());
  for (size_t i = 0; i < exact.size(); ++i) {
    ASSERT_EQ(actual[i].first, exact[i].first);
    expect_close(actual[i].first, actual[i].second, plain[i].second, exact[i].second,
                 2 * kernels::testing::max_value(exact[i].second));
  }
  EXPECT_EQ(actual, by_runner(p, 1, way, !keep));
  EXPECT_EQ(actual, by_runner(p, 3, way, keep));
}

constexpr auto kLess = ChannelRunner::Way::less_work;

TEST(ChannelRunner, ConvolutionsAreTheTwins) {
  for (const bool both : {false, true}) {
    SCOPED_TRACE(both);
    expect_twins(convolution(ProductUse::outside, 0, both), kLess);
    for (const int64_t orders : {1, 2, 3}) {
      SCOPED_TRACE(orders);
      for (const ProductUse kind :
           {ProductUse::outside, ProductUse::inside, ProductUse::reference}) {
        SCOPED_TRACE(static_cast<int>(kind));
        expect_twins(convolution(kind, orders, both), kLess);
      }
    }
  }
}

TEST(ChannelRunner, RecurrencesAreTheTwinsEitherWay) {
  for (const bool both : {false, true}) {
    for (const auto way :
         {ChannelRunner::Way::recurrence, ChannelRunner::Way::convolution, kLess}) {
      SCOPED_TRACE(static_cast<int>(way));
      expect_twins(recurrence(both), way, /*keep=*/both);
    }
    // With states there is one way.
    expect_twins(recurrence(both, true), ChannelRunner::Way::convolution);
  }
}

TEST(ChannelRunner, AConvolutionHasNoStates) {
  Problem p = convolution(ProductUse::outside, 0, false);
  Floats y(p.u.size()), state(1000);
  ChannelRunner runner;
  const ChannelBatch batch{p.sequences(), 1};
  try {
    runner.forward(p.layer, batch, {.u = p.u.data(), .initial = state.data()}, {.y = y.data()});
    FAIL();
  } catch (const std::invalid_argument& e) {
    EXPECT_STREQ(e.what(),
                 "initial state: this layer is run as a convolution, which begins with none; run "
                 "its recurrence step by step instead");
  }
  EXPECT_THROW(
      runner.forward(p.layer, batch, {.u = p.u.data()}, {.y = y.data(), .final = state.data()}),
      std::invalid_argument);
  p.layer.length = 50;
  EXPECT_THROW(runner.forward(p.layer, batch, {.u = p.u.data()}, {.y = y.data()}),
               std::invalid_argument);
}

TEST(ChannelRunner, ShortSequencesHaveNoReferenceProducts) {
  Problem p = convolution(ProductUse::reference, 2, false);
  p.offsets = {0, 3, 150};
  p.layer.length = 150;
  p.layer.K = normal(150 * p.D(), 4);
  Floats y(p.u.size());
  try {
    ChannelRunner().forward(p.layer, {p.sequences(), 2}, {.u = p.u.data()}, {.y = y.data()});
    FAIL();
  } catch (const std::invalid_argument& e) {
    EXPECT_STREQ(e.what(),
                 "Liquid-S4: a sequence of 3 tokens is too short for products of 2 inputs in mode "
                 "\"reference\"; use mode = \"causal\", a smaller degree, or longer sequences");
  }
}

}  // namespace
}  // namespace rotrnn
