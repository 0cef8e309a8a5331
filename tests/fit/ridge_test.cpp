#include "rotrnn/fit/ridge.h"

#include <gtest/gtest.h>

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <numeric>

#include "rotrnn/base/random.h"

namespace rotrnn::fit {
namespace {

using Matrix = Eigen::MatrixXd;
using Vector = Eigen::VectorXd;

struct Problem {
  size_t n, F, m;
  std::vector<float> x;
  std::vector<double> y, weights;
  std::vector<int64_t> groups;

  RidgeRows rows() const { return {n, F, m, x.data(), y.data(), weights.data()}; }
};

/// Rows in pairs x, -x of one weight: columns have the weighted mean 0, as RowRidge wants them. Few
/// binary places, so that products are exact in float and all the rest is double.
Problem make(size_t n, size_t F, size_t m, uint64_t seed) {
  Problem p{n, F, m, {}, {}, {}, {}};
  Random random(seed, RandomSite::trial);
  p.x.resize(n * F);
  for (size_t i = 0; i < n; i += 2) {
    for (size_t f = 0; f < F; ++f) {
      p.x[i * F + f] = (static_cast<float>(random.below(33)) - 16) / 8;
      p.x[(i + 1) * F + f] = -p.x[i * F + f];
    }
    p.weights.insert(p.weights.end(), 2, 0.3 + random.uniform());
  }
  for (size_t i = 0; i < n; ++i) {
    p.groups.push_back(static_cast<int64_t>(i < n / 2 ? 0 : 1 + i % 3));
    for (size_t k = 0; k < m; ++k) {
      p.y.push_back(static_cast<double>(p.x[i * F + k % F]) + 0.5 * random.normal() + 2);
    }
  }
  return p;
}

/// The plain solution on some rows, by the normal equations with an intercept: [F + 1, m].
Matrix solve_plain(const Problem& p, const std::vector<size_t>& rows, double penalty) {
  const auto F = static_cast<long>(p.F);
  Matrix a = Matrix::Zero(F + 1, F + 1), b = Matrix::Zero(F + 1, static_cast<long>(p.m));
  for (const size_t i : rows) {
    Vector x(F + 1);
    for (long f = 0; f < F; ++f) x(f) = p.x[i * p.F + static_cast<size_t>(f)];
    x(F) = 1;
    const Vector y = Eigen::Map<const Vector>(p.y.data() + i * p.m, static_cast<long>(p.m));
    a += p.weights[i] * x * x.transpose();
    b += p.weights[i] * x * y.transpose();
  }
  for (long f = 0; f < F; ++f) a(f, f) += penalty;
  return a.fullPivLu().solve(b);
}

double predict_plain(const Problem& p, const Matrix& beta, size_t i, size_t k) {
  double y = beta(static_cast<long>(p.F), static_cast<long>(k));
  for (size_t f = 0; f < p.F; ++f) {
    y += beta(static_cast<long>(f), static_cast<long>(k)) * static_cast<double>(p.x[i * p.F + f]);
  }
  return y;
}

/// Fits again without each group in turn.
void expect_left_out(const Problem& p, const RowRidge& ridge, double penalty,
                     const std::vector<int64_t>& groups) {
  const int64_t last = *std::max_element(groups.begin(), groups.end());
  for (int64_t group = 0; group <= last; ++group) {
    std::vector<size_t> rest;
    for (size_t i = 0; i < p.n; ++i) {
      if (groups[i] != group) rest.push_back(i);
    }
    const Matrix beta = solve_plain(p, rest, penalty);
    for (size_t i = 0; i < p.n; ++i) {
      if (groups[i] != group) continue;
      for (size_t k = 0; k < p.m; ++k) {
        ASSERT_NEAR(ridge.left_out()[i * p.m + k], predict_plain(p, beta, i, k), 1e-7)
            << "row " << i << " of group " << group;
      }
    }
  }
}

TEST(RowRidge, LeavesOutWhatAFitWithoutItPredicts) {
  for (const auto& [n, F] : {std::pair<size_t, size_t>{20, 50}, {30, 9}, {140, 7}}) {
    SCOPED_TRACE(n);
    const Problem p = make(n, F, 3, 1);
    std::vector<int64_t> each(n);
    std::iota(each.begin(), each.end(), 0);
    RowRidge ridge(p.rows(), 2);
    for (const double penalty : {0.1, 10.0}) {
      ASSERT_TRUE(ridge.solve(penalty, {}));
      expect_left_out(p, ridge, penalty, each);
      ASSERT_TRUE(ridge.solve(penalty, p.groups));
      expect_left_out(p, ridge, penalty, p.groups);
    }
  }
}

TEST(RowRidge, CoefficientsAreThePlainOnes) {
  const Problem p = make(26, 40, 2, 2);
  RowRidge ridge(p.rows(), 2);
  ASSERT_TRUE(ridge.solve(0.7, {}));
  std::vector<size_t> all(p.n);
  std::iota(all.begin(), all.end(), size_t{0});
  const Matrix exact = solve_plain(p, all, 0.7);
  const std::vector<double> beta = ridge.coefficients();
  for (size_t k = 0; k < p.m; ++k) {
    for (size_t f = 0; f < p.F; ++f) {
      EXPECT_NEAR(beta[k * p.F + f], exact(static_cast<long>(f), static_cast<long>(k)), 1e-8);
    }
    EXPECT_NEAR(ridge.intercepts()[k], exact(static_cast<long>(p.F), static_cast<long>(k)), 1e-8);
  }
}

TEST(ColumnRidge, BlocksGiveThePlainSolution) {
  Problem p = make(300, 33, 2, 3);
  for (size_t i = 0; i < p.n; ++i) {
    p.x[i * p.F + 4] += 0.5f;                // a mean that blocks cannot know
    p.weights[i] = i % 3 == 0 ? 4 : 0.0625;  // with roots that are exact in float
  }
  ColumnRidge ridge(p.F, p.m, 2);
  for (size_t begin = 0; begin < p.n; begin += 70) {
    const size_t n = std::min<size_t>(70, p.n - begin);
    std::vector<float> x(p.x.begin() + static_cast<ptrdiff_t>(begin * p.F),
                         p.x.begin() + static_cast<ptrdiff_t>((begin + n) * p.F));
    ridge.add(x.data(), p.y.data() + begin * p.m, p.weights.data() + begin, n);
  }
  const double total = std::accumulate(p.weights.begin(), p.weights.end(), 0.0);
  ASSERT_TRUE(ridge.solve(2.0 / total));
  std::vector<size_t> all(p.n);
  std::iota(all.begin(), all.end(), size_t{0});
  const Matrix exact = solve_plain(p, all, 2.0);
  for (size_t k = 0; k < p.m; ++k) {
    for (size_t f = 0; f < p.F; ++f) {
      EXPECT_NEAR(ridge.coefficients()[k * p.F + f],
                  exact(static_cast<long>(f), static_cast<long>(k)), 1e-8);
    }
    EXPECT_NEAR(ridge.intercepts()[k], exact(static_cast<long>(p.F), static_cast<long>(k)), 1e-8);
  }
}

}  // namespace
}  // namespace rotrnn::fit
