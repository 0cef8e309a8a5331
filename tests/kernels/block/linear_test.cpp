#include "rotrnn/kernels/block/linear.h"

#include "rotrnn/kernels/oracle/block_reference.h"
#include "tests/kernels/test_util.h"

namespace rotrnn::kernels::testing {
namespace {

struct Case {
  size_t n, channels, D;
};
// Rows around the groups of 256 that are summed apart.
const Case kCases[] = {{1, 1, 1}, {7, 3, 13}, {256, 1, 40}, {257, 2, 5}, {1300, 4, 17}};

TEST(Linear, ForwardMatchesOracle) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.n);
    const Floats x = normal(c.n * c.channels, 1), w = normal(c.D * c.channels, 2),
                 bias = normal(c.D, 3);
    const auto run = [&]<class T>(T) {
      const auto as = [](const Floats& v) { return std::vector<T>(v.begin(), v.end()); };
      auto out = reference::product(as(x), reference::transpose(as(w), c.D, c.channels), c.n,
                                    c.channels, c.D);
      for (size_t i = 0; i < out.size(); ++i) out[i] += T(bias[i % c.D]);
      return out;
    };
    for (int threads : {1, 3}) {
      Floats out(c.n * c.D, NAN);
      linear_forward(x.data(), c.n, c.channels, w.data(), bias.data(), c.D, out.data(), threads);
      expect_close("out", out, run(float()), run(double()));
    }
  }
}

template <class T>
struct Gradients {
  std::vector<T> weight, bias, x;
};

template <class T>
Gradients<T> run_reference(const Case& c, const Floats& x, const Floats& w, const Floats& g) {
  Gradients<T> r{std::vector<T>(c.D * c.channels), std::vector<T>(c.D),
                 std::vector<T>(c.n * c.channels)};
  for (size_t t = 0; t < c.n; ++t) {
    for (size_t d = 0; d < c.D; ++d) {
      const T slope = g[t * c.D + d];
      r.bias[d] += slope;
      for (size_t k = 0; k < c.channels; ++k) {
        r.weight[d * c.channels + k] += slope * T(x[t * c.channels + k]);
        r.x[t * c.channels + k] += slope * T(w[d * c.channels + k]);
      }
    }
  }
  return r;
}

TEST(Linear, GradientsMatchOracle) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.n);
    const Floats x = normal(c.n * c.channels, 1), w = normal(c.D * c.channels, 2),
                 g = normal(c.n * c.D, 3);
    const auto exact = run_reference<double>(c, x, w, g);
    const auto plain = run_reference<float>(c, x, w, g);
    Gradients<float> one;
    for (int threads : {1, 2, 3}) {
      // All are overwritten, whatever they held.
      Gradients<float> r{Floats(w.size(), NAN), Floats(c.D, NAN), Floats(x.size(), NAN)};
      linear_backward(x.data(), c.n, c.channels, w.data(), c.D, g.data(), r.weight.data(),
                      r.bias.data(), r.x.data(), threads);
      expect_close("dweight", r.weight, plain.weight, exact.weight);
      expect_close("dbias", r.bias, plain.bias, exact.bias);
      expect_close("dx", r.x, plain.x, exact.x);
      if (threads == 1) one = r;
      EXPECT_EQ(r.weight, one.weight) << "same bits for any thread count";
      EXPECT_EQ(r.bias, one.bias);
      EXPECT_EQ(r.x, one.x);
      Floats weight(w.size(), NAN), bias(c.D, NAN);
      linear_backward(x.data(), c.n, c.channels, w.data(), c.D, g.data(), weight.data(),
                      bias.data(), nullptr, threads);
      EXPECT_EQ(weight, one.weight) << "without dx";
      EXPECT_EQ(bias, one.bias);
    }
  }
}

}  // namespace
}  // namespace rotrnn::kernels::testing
