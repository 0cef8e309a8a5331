#include "rotrnn/kernels/recurrence/products.h"

#include "tests/kernels/test_util.h"

namespace rotrnn::kernels::testing {
namespace {

struct Problem {
  size_t D = 7, orders = 1;
  std::vector<int64_t> offsets{0, 1, 3, 203, 203, 340};
  Floats u, c, y, dy;

  PackedSequences sequences() const { return {offsets.data(), offsets.size() - 1}; }
};

Problem make_problem(size_t orders) {
  Problem p;
  p.orders = orders;
  p.u = normal(340 * p.D, 1);
  p.c = normal(orders * p.D, 2);
  p.y = normal(340 * p.D, 3);
  p.dy = normal(340 * p.D, 4);
  return p;
}

template <class T>
struct Result {
  std::vector<T> y, du, dc;
};

/// The sum as it is written; du begins with y, for it is added to.
template <class T>
Result<T> direct(const Problem& p) {
  Result<T> r{{p.y.begin(), p.y.end()}, {p.y.begin(), p.y.end()}, std::vector<T>(p.c.size())};
  for (size_t i = 0; i < p.sequences().count; ++i) {
    for (size_t t = p.sequences().begin(i); t < p.sequences().end(i); ++t) {
      for (size_t d = 0; d < p.D; ++d) {
        for (size_t order = 2; order <= p.orders + 1; ++order) {
          if (t + 1 < p.sequences().begin(i) + order) continue;  // one of them is 0
          const auto at = [&](size_t j) { return (t - j) * p.D + d; };
          const size_t which = (order - 2) * p.D + d;
          const T g = p.dy[at(0)], c = p.c[which];
          T product = 1;
          for (size_t j = 0; j < order; ++j) product *= T(p.u[at(j)]);
          r.y[at(0)] += c * product;
          r.dc[which] += g * product;
          for (size_t j = 0; j < order; ++j) {
            T others = 1;
            for (size_t k = 0; k < order; ++k) others *= k == j ? T(1) : T(p.u[at(k)]);
            r.du[at(j)] += c * g * others;
          }
        }
      }
    }
  }
  return r;
}

Result<float> fast(const Problem& p, int threads) {
  Arena scratch;
  Result<float> r{p.y, p.y, Floats(p.c.size(), NAN)};
  products_forward(threads, p.sequences(), p.D, p.orders, p.c.data(), p.u.data(), r.y.data());
  products_backward(threads, p.sequences(), p.D, p.orders, p.c.data(), p.u.data(), p.dy.data(),
                    r.du.data(), r.dc.data(), scratch);
  return r;
}

TEST(Products, EqualTheSum) {
  for (const size_t orders : {1, 2, 3}) {
    const Problem p = make_problem(orders);
    const auto exact = direct<double>(p);
    const auto plain = direct<float>(p);
    const auto actual = fast(p, 2);
    expect_close("y", actual.y, plain.y, exact.y);
    expect_close("du", actual.du, plain.du, exact.du);
    expect_close("dc", actual.dc, plain.dc, exact.dc);
  }
}

TEST(Products, SameBitsForAnyThreads) {
  const Problem p = make_problem(2);
  const auto one = fast(p, 1), three = fast(p, 3);
  EXPECT_EQ(one.y, three.y);
  EXPECT_EQ(one.du, three.du);
  EXPECT_EQ(one.dc, three.dc);
}

}  // namespace
}  // namespace rotrnn::kernels::testing
