#include "rotrnn/kernels/recurrence/convolve.h"

#include <cstring>

#include "rotrnn/kernels/recurrence/fft.h"
#include "tests/kernels/test_util.h"

namespace rotrnn::kernels::testing {
namespace {

struct Problem {
  size_t D = 0, length = 0;
  std::vector<int64_t> offsets{0};
  Floats u, dy, K, K_reverse;

  PackedSequences sequences() const { return {offsets.data(), offsets.size() - 1}; }
};

Problem make_problem(size_t D, const std::vector<int>& lengths, size_t longer, bool reverse) {
  Problem p;
  p.D = D;
  for (const int length : lengths) {
    p.offsets.push_back(p.offsets.back() + length);
    p.length = std::max(p.length, static_cast<size_t>(length));
  }
  p.length += longer;
  const size_t n = static_cast<size_t>(p.offsets.back()) * D;
  p.u = normal(n, 1);
  p.dy = normal(n, 2);
  p.K = normal(p.length * D, 3);
  if (reverse) p.K_reverse = normal(p.length * D, 4);
  return p;
}

template <class T>
struct Result {
  std::vector<T> y, du, dK, dK_reverse;
};

/// The sums as they are written.
template <class T>
Result<T> direct(const Problem& p) {
  Result<T> r;
  r.y.assign(p.u.size(), T(0));
  r.du = r.y;
  r.dK.assign(p.K.size(), T(0));
  r.dK_reverse.assign(p.K_reverse.size(), T(0));
  const size_t D = p.D;
  for (size_t i = 0; i + 1 < p.offsets.size(); ++i) {
    const auto begin = static_cast<size_t>(p.offsets[i]);
    const size_t length = static_cast<size_t>(p.offsets[i + 1]) - begin;
    for (size_t t = 0; t < length; ++t) {
      for (size_t s = 0; s < length; ++s) {
        if (s > t && p.K_reverse.empty()) continue;
        for (size_t d = 0; d < D; ++d) {
          const size_t to = (begin + t) * D + d, from = (begin + s) * D + d;
          const size_t tap = (s <= t ? t - s : s - t - 1) * D + d;
          r.y[to] += T(s <= t ? p.K[tap] : p.K_reverse[tap]) * T(p.u[from]);
          r.du[from] += T(s <= t ? p.K[tap] : p.K_reverse[tap]) * T(p.dy[to]);
          (s <= t ? r.dK : r.dK_reverse)[tap] += T(p.u[from]) * T(p.dy[to]);
        }
      }
    }
  }
  return r;
}

Result<float> fast(const Problem& p, int threads) {
  Arena scratch;
  Result<float> r;
  r.y.assign(p.u.size(), NAN);
  r.du = r.y;
  r.dK.assign(p.K.size(), NAN);
  r.dK_reverse.assign(p.K_reverse.size(), NAN);
  const bool reverse = !p.K_reverse.empty();
  const ConvolutionKernels kernels{p.D, p.length, p.K.data(),
                                   reverse ? p.K_reverse.data() : nullptr};
  for (int repeat = 0; repeat < 2; ++repeat) {  // memory is used again
    convolve_forward(threads, p.sequences(), kernels, p.u.data(), r.y.data(), false, scratch);
    convolve_backward(threads, p.sequences(), kernels, p.u.data(), p.dy.data(),
                      {r.du.data(), false, r.dK.data(), reverse ? r.dK_reverse.data() : nullptr},
                      scratch);
  }
  return r;
}

/// The error of an FFT is that of the largest value, not of each: a few roundings of the norm of
/// what is added, for every stage.
void expect_near(const char* what, const Floats& actual, const Doubles& exact, double terms) {
  const double scale = std::sqrt(terms) * std::log2(terms + 2);
  EXPECT_LE(max_difference(actual, exact), 6e-7 * scale) << what;
}

void check(const Problem& p) {
  const Result<double> exact = direct<double>(p);
  const Result<float> actual = fast(p, 2);
  const auto length = static_cast<double>(p.length);
  expect_near("y", actual.y, exact.y, 2 * length);
  expect_near("du", actual.du, exact.du, 2 * length);
  const auto tokens = static_cast<double>(p.offsets.back());
  expect_near("dK", actual.dK, exact.dK, tokens);
  expect_near("dK_reverse", actual.dK_reverse, exact.dK_reverse, tokens);
}

TEST(Convolve, EqualsTheSums) {
  for (const bool reverse : {false, true}) {
    check(make_problem(1, {1}, 0, reverse));
    check(make_problem(3, {2}, 5, reverse));
    check(make_problem(19, {70, 1, 200, 3, 3}, 0, reverse));
    check(make_problem(8, {33, 0, 33, 32, 32, 32, 1}, 7, reverse));
    check(make_problem(33, {784, 784, 500}, 0, reverse));
    check(make_problem(5, {1500, 20}, 100, reverse));
  }
}

TEST(Convolve, EqualsTheSumsInEveryTarget) {
  for_each_target([] { check(make_problem(19, {70, 1, 200, 121, 3}, 2, true)); });
}

TEST(Convolve, SameBitsForAnyThreads) {
  const Problem p = make_problem(19, {300, 301, 299, 20, 2, 300, 300}, 0, true);
  const Result<float> one = fast(p, 1);
  for (const int threads : {2, 5}) {
    const Result<float> more = fast(p, threads);
    EXPECT_EQ(one.y, more.y);
    EXPECT_EQ(one.du, more.du);
    EXPECT_EQ(one.dK, more.dK);
    EXPECT_EQ(one.dK_reverse, more.dK_reverse);
  }
}

TEST(Convolve, AddsWhereAsked) {
  const Problem p = make_problem(9, {30, 40}, 0, false);
  const Result<float> plain = fast(p, 2);
  Arena scratch;
  const ConvolutionKernels kernels{p.D, p.length, p.K.data(), nullptr};
  Floats y(p.u.size(), 1.0f), du = y;
  convolve_forward(2, p.sequences(), kernels, p.u.data(), y.data(), true, scratch);
  convolve_backward(2, p.sequences(), kernels, p.u.data(), p.dy.data(),
                    {du.data(), true, nullptr, nullptr}, scratch);
  for (size_t i = 0; i < y.size(); ++i) {
    EXPECT_EQ(y[i], 1 + plain.y[i]);
    EXPECT_EQ(du[i], 1 + plain.du[i]);
  }
}

TEST(Convolve, SizesAreAtLeastWhatIsAskedAndOfSmallPrimes) {
  for (size_t least = 1; least < 5000; ++least) {
    const size_t n = fft_size(least);
    ASSERT_GE(n, least);
    ASSERT_LE(n, 2 * least);
    size_t rest = n;
    for (const size_t prime : {2, 3, 5}) {
      while (rest % prime == 0) rest /= prime;
    }
    ASSERT_EQ(rest, 1u) << least;
  }
}

}  // namespace
}  // namespace rotrnn::kernels::testing
