#include "rotrnn/layers/state_space/real_fft.h"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <numbers>
#include <vector>

#include "rotrnn/base/random.h"

namespace rotrnn {
namespace {

using Long = std::complex<long double>;
using Doubles = std::vector<double>;

Doubles normal(size_t count, uint64_t seed) {
  Random random(seed, RandomSite::initialise);
  Doubles out(count);
  for (double& x : out) x = random.normal();
  return out;
}

std::vector<size_t> lengths() {
  std::vector<size_t> out{97, 1000, 1009, 4096, 4099};
  for (size_t n = 1; n <= 40; ++n) out.push_back(n);
  return out;
}

double norm(const Doubles& v) {
  double sum = 0;
  for (const double x : v) sum += x * x;
  return std::sqrt(sum);
}

// x_t as the sum says, of one row.
Doubles direct(const double* X, size_t n) {
  std::vector<Long> roots(n);
  for (size_t k = 0; k < n; ++k) {
    roots[k] = std::polar(1.0L, 2 * std::numbers::pi_v<long double> * static_cast<long double>(k) /
                                    static_cast<long double>(n));
  }
  Doubles out(n);
  for (size_t t = 0; t < n; ++t) {
    long double sum = 0;
    for (size_t j = 0; j <= n / 2; ++j) {
      const bool alone = j == 0 || 2 * j == n;
      const Long value(X[2 * j], alone ? 0 : X[2 * j + 1]);
      sum += (alone ? 1.0L : 2.0L) * (value * roots[j * t % n]).real();
    }
    out[t] = static_cast<double>(sum / static_cast<long double>(n));
  }
  return out;
}

TEST(RealFft, IsTheSum) {
  for (const size_t n : lengths()) {
    const size_t rows = n > 1000 ? 3 : 11, stride = rows + 2;
    const Doubles X = normal(2 * rows * (n / 2 + 1), n);
    Doubles x(n * stride, NAN);
    inverse_real_fft(2, rows, n, X.data(), x.data(), stride);
    for (size_t row = 0; row < rows; ++row) {
      const Doubles expected = direct(X.data() + 2 * row * (n / 2 + 1), n);
      Doubles error;
      for (size_t t = 0; t < n; ++t) error.push_back(x[t * stride + row] - expected[t]);
      EXPECT_LE(norm(error), 2e-15 * norm(expected)) << n << ", row " << row;
    }
    for (size_t t = 0; t < n; ++t) EXPECT_TRUE(std::isnan(x[t * stride + rows])) << n;
  }
}

// Of the longest ones, and of those that Bluestein's way is for, by going there and back: the
// adjoint of the inverse is the transform but for the weights.
TEST(RealFft, GoesThereAndBackWhenLong) {
  for (const size_t n : {16000u, 65536u, 65537u, 2u * 10007u, 1u << 20, 1048573u}) {
    Doubles x = normal(n, n), X(2 * (n / 2 + 1)), back(n);
    inverse_real_fft_backward(1, 1, n, x.data(), 1, X.data());
    for (size_t j = 0; j <= n / 2; ++j) {
      const double scale = static_cast<double>(n) / (j == 0 || 2 * j == n ? 1 : 2);
      X[2 * j] *= scale;
      X[2 * j + 1] *= scale;
    }
    inverse_real_fft(1, 1, n, X.data(), back.data(), 1);
    for (size_t t = 0; t < n; ++t) back[t] -= x[t];
    EXPECT_LE(norm(back), 5e-15 * norm(x)) << n;
  }
}

TEST(RealFft, BackwardIsTheAdjoint) {
  for (const size_t n : lengths()) {
    const size_t rows = 9, J = n / 2 + 1;
    const Doubles X = normal(2 * rows * J, 1), dx = normal(n * rows, 2);
    Doubles x(n * rows), dX(2 * rows * J, NAN);
    inverse_real_fft(2, rows, n, X.data(), x.data(), rows);
    inverse_real_fft_backward(2, rows, n, dx.data(), rows, dX.data());
    for (size_t row = 0; row < rows; ++row) {
      double one = 0, other = 0, size = 0;
      for (size_t t = 0; t < n; ++t) {
        one += x[t * rows + row] * dx[t * rows + row];
        size += std::abs(x[t * rows + row] * dx[t * rows + row]);
      }
      for (size_t i = 2 * row * J; i < 2 * (row + 1) * J; ++i) other += X[i] * dX[i];
      EXPECT_NEAR(one, other, 1e-13 * size + 1e-15) << n;
    }
  }
}

TEST(RealFft, SameBitsForAnyThreads) {
  for (const size_t n : {1000u, 1009u, 1155u}) {
    const size_t rows = 37;
    const Doubles X = normal(2 * rows * (n / 2 + 1), 3);
    Doubles one(n * rows), three(n * rows), done(X.size()), dthree(X.size());
    inverse_real_fft(1, rows, n, X.data(), one.data(), rows);
    inverse_real_fft(3, rows, n, X.data(), three.data(), rows);
    EXPECT_EQ(one, three);
    inverse_real_fft_backward(1, rows, n, one.data(), rows, done.data());
    inverse_real_fft_backward(3, rows, n, one.data(), rows, dthree.data());
    EXPECT_EQ(done, dthree);
  }
}

}  // namespace
}  // namespace rotrnn
