#include "rotrnn/kernels/recurrence/scan.h"

#include "rotrnn/kernels/oracle/block_reference.h"
#include "tests/kernels/test_util.h"

namespace rotrnn::kernels::testing {
namespace {

struct Case {
  size_t rows, S;
  bool reverse, per_token;
};

struct Data {
  Floats re, im, v, dz, initial, final_gradient;
};

Data make_data(const Case& c, double low, double high) {
  Data d;
  const size_t count = c.per_token ? c.rows * c.S : c.S;
  const Floats radius = uniform(count, 1, low, high), angle = uniform(count, 2, 0, 3);
  for (size_t i = 0; i < count; ++i) {
    d.re.push_back(radius[i] * std::cos(angle[i]));
    d.im.push_back(radius[i] * std::sin(angle[i]));
  }
  d.v = normal(c.rows * 2 * c.S, 3);
  d.dz = normal(c.rows * 2 * c.S, 4);
  d.initial = normal(2 * c.S, 5);
  d.final_gradient = normal(2 * c.S, 6);
  return d;
}

template <class T>
struct Answer {
  std::vector<T> z, g, dre, dim, dinitial;
};

template <class T>
Answer<T> run_reference(const Case& c, const Data& d) {
  const auto as = [](const Floats& v) { return std::vector<T>(v.begin(), v.end()); };
  std::vector<std::complex<T>> start, end;
  for (size_t i = 0; i < c.S; ++i) {
    start.push_back(reference::state_at(as(d.initial), 0, i, c.S));
    end.push_back(reference::state_at(as(d.final_gradient), 0, i, c.S));
  }
  Answer<T> a{as(d.v), as(d.dz), std::vector<T>(d.re.size()), std::vector<T>(d.re.size()), {}};
  const auto order = reference::visit(0, c.rows, c.reverse);
  const size_t stride = c.per_token ? c.S : 0;
  reference::scan(a.z, order, c.S, as(d.re), as(d.im), stride, start);
  const auto begin = reference::scan_adjoint(a.g, a.z, order, c.S, as(d.re), as(d.im), stride,
                                             start, end, a.dre, a.dim);
  for (const auto& z : begin) a.dinitial.push_back(z.real());
  for (const auto& z : begin) a.dinitial.push_back(z.imag());
  return a;
}

Answer<float> run_fast(const Case& c, const Data& d) {
  const ScanSystem system{c.S, d.re.data(), d.im.data(), c.per_token ? c.S : 0, c.reverse};
  Answer<float> a{d.v, d.dz, Floats(d.re.size()), Floats(d.re.size()), d.final_gradient};
  Floats state = d.initial;
  scan_forward(system, a.z.data(), 2 * c.S, c.rows, state.data());
  Doubles sum(2 * c.S, 0.0);
  scan_backward(system, a.g.data(), 2 * c.S, a.z.data(), 2 * c.S, c.rows, d.initial.data(),
                a.dinitial.data(), sum.data(), a.dre.data(), a.dim.data());
  if (!c.per_token) {
    for (size_t i = 0; i < c.S; ++i) {
      a.dre[i] = static_cast<float>(sum[i]);
      a.dim[i] = static_cast<float>(sum[c.S + i]);
    }
  }
  const size_t last = c.reverse ? 0 : c.rows - 1;
  for (size_t i = 0; i < 2 * c.S; ++i) EXPECT_EQ(state[i], a.z[last * 2 * c.S + i]);
  return a;
}

void check(const Case& c, double low, double high) {
  const Data d = make_data(c, low, high);
  const auto exact = run_reference<double>(c, d);
  const auto plain = run_reference<float>(c, d);
  const auto fast = run_fast(c, d);
  expect_close("z", fast.z, plain.z, exact.z);
  expect_close("g", fast.g, plain.g, exact.g);
  // One λ sums rows of products, which cancel.
  const double rows = c.per_token ? 1 : std::sqrt(static_cast<double>(c.rows));
  const double terms = rows * max_value(exact.g) * max_value(exact.z);
  expect_close("dlambda re", fast.dre, plain.dre, exact.dre, terms);
  expect_close("dlambda im", fast.dim, plain.dim, exact.dim, terms);
  expect_close("dinitial", fast.dinitial, plain.dinitial, exact.dinitial);
}

TEST(Scan, MatchesOracle) {
  for_each_target([] {
    for (size_t S : {1, 3, 8, 31, 65}) {
      for (size_t rows : {1, 2, 17, 300}) {
        for (bool reverse : {false, true}) {
          for (bool per_token : {false, true}) check({rows, S, reverse, per_token}, 0.3, 0.99);
        }
      }
    }
  });
}

TEST(Scan, LongSequenceNearTheUnitCircle) {
  check({100000, 5, false, false}, 0.9999, 0.9999);
  check({100000, 5, true, false}, 0.9999, 0.9999);
}

}  // namespace
}  // namespace rotrnn::kernels::testing
