#include "rotrnn/kernels/gemm/cholesky.h"

#include <Eigen/Dense>

#include "rotrnn/kernels/gemm/double_outer.h"
#include "rotrnn/kernels/gemm/gram.h"
#include "tests/kernels/test_util.h"

namespace rotrnn::kernels::testing {
namespace {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

Matrix random_matrix(size_t rows, size_t columns, uint64_t seed) {
  const Floats numbers = normal(rows * columns, seed);
  Matrix m(rows, columns);
  std::copy(numbers.begin(), numbers.end(), m.data());
  return m;
}

Matrix positive(size_t n) {
  const Matrix x = random_matrix(n, n + 5, 1);
  return x * x.transpose() + 0.1 * Matrix::Identity(static_cast<long>(n), static_cast<long>(n));
}

constexpr size_t kSizes[] = {1, 2, 15, 16, 17, 127, 128, 129, 300, 389};

TEST(Cholesky, SolvesAndInverts) {
  for_each_target([] {
    for (const size_t n : kSizes) {
      for (const size_t m : {0, 1, 3, 17}) {
        SCOPED_TRACE(std::to_string(n) + ", " + std::to_string(m));
        const Matrix a = positive(n), b = random_matrix(n, std::max<size_t>(m, 1), 2);
        const Matrix exact = a.llt().solve(b), inverse = a.inverse();
        for (const bool want : {false, true}) {
          Matrix x = a, y = b;
          ASSERT_TRUE(cholesky(x.data(), n, n, want, y.data(), y.cols(), m, 2));
          if (want) {
            const Matrix w = x.triangularView<Eigen::Lower>();
            const Matrix difference = w.transpose() * w - inverse;
            EXPECT_LE(difference.cwiseAbs().maxCoeff(), 1e-10 * inverse.cwiseAbs().maxCoeff());
          }
          if (m == 0) continue;
          cholesky_back(x.data(), n, n, y.data(), y.cols(), m);
          EXPECT_LE((y - exact).cwiseAbs().maxCoeff(), 1e-9 * exact.cwiseAbs().maxCoeff());
        }
      }
    }
  });
}

TEST(Cholesky, SameBitsForAnyThreads) {
  const size_t n = 389, m = 3;
  Matrix a = positive(n), b = random_matrix(n, m, 2), c = a, d = b;
  cholesky(a.data(), n, n, true, b.data(), m, m, 1);
  cholesky(c.data(), n, n, true, d.data(), m, m, 3);
  EXPECT_TRUE(a == c && b == d);
}

TEST(Cholesky, SaysWhenNotPositive) {
  for (const size_t n : {1, 40, 200}) {
    Matrix a = positive(n);
    a(static_cast<long>(n) - 1, static_cast<long>(n) - 1) = -1;
    EXPECT_FALSE(cholesky(a.data(), n, n, true, nullptr, 0, 0, 2));
  }
}

TEST(DoubleOuter, MatchesEigen) {
  for_each_target([] {
    for (const size_t R : {1, 7, 16, 33}) {
      for (const size_t K : {1, 100, 300}) {
        const Matrix a = random_matrix(K, R, 1), b = random_matrix(K, 19, 2);
        Matrix c = random_matrix(R, 19, 3);
        const Matrix exact = c - a.transpose() * b;
        double_outer(c.data(), 19, a.data(), R, b.data(), 19, R, K, 19, -1, 2);
        EXPECT_LE((c - exact).cwiseAbs().maxCoeff(), 1e-12 * static_cast<double>(K)) << R << K;
      }
    }
  });
}

void expect_upper(const Matrix& out, const Matrix& exact, size_t terms) {
  const double allowed = 1e-6 * static_cast<double>(terms) + 1e-6;  // of sums of squares near 1
  for (long i = 0; i < out.rows(); ++i) {
    for (long j = i; j < out.cols(); ++j) ASSERT_NEAR(out(i, j), exact(i, j), allowed);
  }
}

TEST(Gram, MatchesEigen) {
  for_each_target([] {
    for (const size_t n : {1, 95, 97, 200}) {
      for (const size_t F : {1, 96, 600, 2100}) {
        SCOPED_TRACE(std::to_string(n) + ", " + std::to_string(F));
        const Floats x = normal(n * F, 1);
        Matrix wide(n, F), rows(n, n), columns = Matrix::Ones(F, F);
        std::copy(x.begin(), x.end(), wide.data());
        gram_of_rows(x.data(), n, F, rows.data(), 2);
        expect_upper(rows, wide * wide.transpose(), F);
        if (F > 700) continue;
        add_gram_of_columns(x.data(), n, F, columns.data(), 2);
        expect_upper(columns, Matrix::Ones(F, F) + wide.transpose() * wide, n);
      }
    }
  });
}

}  // namespace
}  // namespace rotrnn::kernels::testing
