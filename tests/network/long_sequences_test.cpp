// Layers of channels along 4,096 steps: recurrence, convolution and steps, in double and float32.

#include "rotrnn/kernels/oracle/channel_reference.h"
#include "rotrnn/kernels/oracle/convolution_reference.h"
#include "rotrnn/network/fused/channel_runner.h"
#include "rotrnn/network/single_layer.h"
#include "tests/layers/double_layer.h"

namespace rotrnn::testing {
namespace {

using Floats = std::vector<float>;

constexpr int64_t kLong = 4096;
// What the forms may differ by: 4,096 steps of rounding.
constexpr double kDouble = 1e-10, kFloat = 1e-4;

LayerOptions options_for(const char* layer, int64_t width, int64_t state) {
  LayerOptions o;
  o.layer = layer;
  o.width = width;
  o.state = state;
  return o;
}

// Of float32 numbers.
DoubleBatch long_batch(int64_t width) {
  DoubleBatch batch = noise({kLong}, width, 3);
  batch.u = as<double>(as<float>(batch.u));
  return batch;
}

// Step by step, by the recurrence that streams run, in T.
template <class T>
std::vector<T> steps(const DoubleLayer& layer, const Doubles& u) {
  const auto r =
      std::get<ChannelSteps>(layer.kind().recurrence(layer.options(), layer.values(), true));
  kernels::reference::ChannelStepValues<T> v;
  v.D = static_cast<size_t>(r.width), v.N = static_cast<size_t>(r.states);
  v.degree = static_cast<size_t>(r.orders) + 1, v.inside = r.liquid_inside;
  v.lambda_re = as<T>(r.lambda_re), v.lambda_im = as<T>(r.lambda_im);
  v.c_re = as<T>(r.c_re), v.c_im = as<T>(r.c_im), v.p_re = as<T>(r.p_re), v.p_im = as<T>(r.p_im);
  v.q_re = as<T>(r.q_re), v.q_im = as<T>(r.q_im), v.b_re = as<T>(r.b_re), v.b_im = as<T>(r.b_im);
  v.products = as<T>(r.liquid);
  std::vector<T> y = kernels::reference::channel_steps(v, as<T>(u));
  for (size_t i = 0; i < y.size(); ++i) {
    y[i] += static_cast<T>(r.D[i % v.D]) * static_cast<T>(u[i]);
  }
  return y;
}

// The layer in double against its steps, and what float32 makes of both.
Doubles expect_steps(DoubleLayer& layer, const DoubleBatch& batch) {
  const Doubles y = layer.forward(batch).y;
  EXPECT_LE(relative_error(steps<double>(layer, batch.u), y), kDouble);
  EXPECT_LE(relative_error(steps<float>(layer, batch.u), y), kFloat);
  SingleLayer fused(layer.options(), 1);
  fused.engine.threads = 2;
  const Floats u = as<float>(batch.u);
  Floats fast(u.size());
  fused.forward({batch.offsets, u.data(), false, {}}, {fast.data(), {}});
  EXPECT_LE(relative_error(fast, y), kFloat);
  return y;
}

TEST(LongSequences, S4DAsRecurrenceConvolutionAndSteps) {
  DoubleLayer layer(options_for("s4d", 4, 16));
  const DoubleBatch batch = long_batch(4);
  const Doubles y = expect_steps(layer, batch);

  const auto& s = std::get<Channel<double>>(layer.map(kLong));
  Doubles K(kLong * 4);
  for (size_t i = 0; i < s.lambda_re.size(); ++i) {
    const std::complex<double> lambda(s.lambda_re[i], s.lambda_im[i]);
    std::complex<double> x(s.c_re[i], s.c_im[i]);
    for (size_t l = 0; l < kLong; ++l, x *= lambda) K[l * 4 + i % 4] += x.real();
  }
  Doubles convolved = kernels::reference::convolution_forward<double>(
      batch.sequences(), 4, ProductUse::outside, {batch.u, K, {}, {}});
  for (size_t i = 0; i < y.size(); ++i) convolved[i] += s.D[i % 4] * batch.u[i];
  EXPECT_LE(relative_error(convolved, y), kDouble);

  Description<float> rounded;
  convert(Description<double>(s), rounded);
  const auto& single = std::get<Channel<float>>(rounded);
  const Floats u = as<float>(batch.u);
  for (const auto way : {ChannelRunner::Way::recurrence, ChannelRunner::Way::convolution}) {
    Floats fast(u.size());
    ChannelRunner(way).forward(single, {batch.sequences(), 2}, {.u = u.data()}, {.y = fast.data()});
    for (size_t i = 0; i < fast.size(); ++i) fast[i] += single.D[i % 4] * u[i];
    EXPECT_LE(relative_error(fast, y), kFloat) << static_cast<int>(way);
  }
}

TEST(LongSequences, S4AsConvolutionAndSteps) {
  LayerOptions o = options_for("s4", 4, 16);
  o.s4.max_length = kLong - 1;  // which is doubled
  DoubleLayer layer(o);
  expect_steps(layer, long_batch(4));
  EXPECT_EQ(layer.length(), 2 * (kLong - 1));
}

TEST(LongSequences, LiquidS4AsConvolutionAndSteps) {
  for (const auto form : {LiquidForm::pb, LiquidForm::kb}) {
    LayerOptions o = options_for("liquid_s4", 3, 7);
    o.liquid_s4.form = form;
    o.liquid_s4.degree = 3;
    DoubleLayer layer(o);
    expect_steps(layer, long_batch(3));
  }
}

// y, du and the gradients of the planes, one way and the other.
TEST(LongSequences, RecurrencesByTheirKernelsEqualRecurrences) {
  for (const bool bidirectional : {false, true}) {
    LayerOptions o = options_for("s4d", 19, 64);
    o.bidirectional = bidirectional;
    DoubleLayer layer(o, 3);
    Description<float> rounded;
    convert(layer.map(1200), rounded);
    const auto& s = std::get<Channel<float>>(rounded);
    const std::vector<int64_t> offsets{0, 1200, 2200, 2201, 3000};
    const Floats u = as<float>(normal(3000 * 19, 6)), dy = as<float>(normal(3000 * 19, 7));
    const auto run = [&](ChannelRunner::Way way) {
      ChannelRunner runner(way);
      const ChannelBatch batch{{offsets.data(), offsets.size() - 1}, 2};
      std::vector<Floats> out(2, Floats(u.size()));
      Channel<float> g;
      runner.forward(s, batch, {.u = u.data()}, {.y = out[0].data()});
      runner.backward(s, batch, {.u = u.data()}, {.y = dy.data()},
                      {.u = out[1].data(), .layer = &g});
      for (const Floats* plane :
           {&g.lambda_re, &g.lambda_im, &g.c_re, &g.c_im, &g.c_reverse_re, &g.c_reverse_im}) {
        out.push_back(*plane);
      }
      return out;
    };
    const auto one = run(ChannelRunner::Way::recurrence),
               other = run(ChannelRunner::Way::convolution);
    for (size_t i = 0; i < one.size(); ++i) {
      EXPECT_LE(relative_error(other[i], one[i]), 2e-5) << i;
    }
  }
}

}  // namespace
}  // namespace rotrnn::testing
