#include "rotrnn/layers/state_space/hippo.h"

#include "tests/layers/golden.h"

namespace rotrnn::testing {
namespace {

using Complex = std::complex<double>;

void expect_near(Complex value, Complex expected) {
  EXPECT_NEAR(value.real(), expected.real(), 1e-14);
  EXPECT_NEAR(value.imag(), expected.imag(), 1e-14);
}

TEST(Hippo, SmallCasesByHand) {
  const double root3 = std::sqrt(3.0);
  const HippoMatrices two = hippo_matrices(2);
  Eigen::Matrix2d A;
  A << -1, 0, -root3, -2;
  EXPECT_LE((two.A - A).cwiseAbs().maxCoeff(), 2e-15);
  // HiPPO-N is [[-½, √3/2], [-√3/2, -½]]: Λ = -½ - i√3/2, V = (1, -i)/√2.
  const HippoBasis& n = hippo_basis(2);
  ASSERT_EQ(n.lambda.size(), 1);
  ASSERT_EQ(n.V.rows(), 2);
  ASSERT_EQ(n.V.cols(), 1);
  expect_near(n.lambda[0], {-0.5, -root3 / 2});
  expect_near(n.V(0, 0), {1 / std::sqrt(2.0), 0});
  expect_near(n.V(1, 0), {0, -1 / std::sqrt(2.0)});
  expect_near(n.B[0], {1 / std::sqrt(2.0), root3 / std::sqrt(2.0)});
  expect_near(n.P[0], {0.5, root3 / 2});

  // N = 4: the skew part has entries ½√((2n+1)(2k+1)), so its characteristic polynomial is
  // μ⁴ - 43/2 μ² + 105/16 (half the sum of squares, the Pfaffian squared).
  const HippoBasis& four = hippo_basis(4);
  expect_near(four.lambda[0], {-0.5, -std::sqrt((21.5 + std::sqrt(436.0)) / 2)});
  expect_near(four.lambda[1], {-0.5, -std::sqrt((21.5 - std::sqrt(436.0)) / 2)});
  EXPECT_EQ(hippo_basis(1).lambda.size(), 0);
}

TEST(Hippo, EigenpairsSolveTheEquation) {
  for (const int64_t N : {2, 4, 5, 9, 16, 64}) {
    SCOPED_TRACE(N);
    const HippoMatrices h = hippo_matrices(N);
    const HippoBasis& n = hippo_basis(N);
    const int64_t half = N / 2;
    ASSERT_EQ(n.lambda.size(), half);
    // By the definitions, entry by entry.
    Eigen::MatrixXcd normal(N, N);
    for (int64_t i = 0; i < N; ++i) {
      for (int64_t k = 0; k < N; ++k) {
        const double a = 2 * static_cast<double>(i) + 1, b = 2 * static_cast<double>(k) + 1;
        EXPECT_DOUBLE_EQ(h.A(i, k), i > k ? -std::sqrt(a * b) : i == k ? -(a + 1) / 2 : 0);
        normal(i, k) = h.A(i, k) + std::sqrt(a * b) / 2;
      }
    }
    const double scale = static_cast<double>(N * N);  // the size of the largest eigenvalue
    EXPECT_LE((normal * n.V - n.V * n.lambda.asDiagonal()).cwiseAbs().maxCoeff(), 1e-14 * scale);
    EXPECT_LE((n.V.adjoint() * n.V - Eigen::MatrixXcd::Identity(half, half)).cwiseAbs().maxCoeff(),
              1e-13);
    for (int64_t k = 0; k < half; ++k) {
      EXPECT_EQ(n.V(0, k).imag(), 0) << "first entries are real";
      EXPECT_GT(n.V(0, k).real(), 0);
      EXPECT_EQ(n.lambda[k].real(), -0.5);
      EXPECT_LT(n.lambda[k].imag(), 0);
      if (k > 0) {
        EXPECT_GT(n.lambda[k].imag(), n.lambda[k - 1].imag()) << "ascending";
      }
      Complex b = 0, p = 0;
      for (int64_t i = 0; i < N; ++i) {
        b += std::conj(n.V(i, k)) * std::sqrt(2 * static_cast<double>(i) + 1);
        p += std::conj(n.V(i, k)) * std::sqrt(static_cast<double>(i) + 0.5);
      }
      EXPECT_LE(std::abs(b - n.B[k]), 1e-12);
      EXPECT_LE(std::abs(p - n.P[k]), 1e-12);
    }
  }
}

// Row by row, as the scripts have them.
template <class Matrix>
auto rows_of(const Matrix& m) {
  std::vector<typename Matrix::Scalar> out;
  for (int64_t i = 0; i < m.rows(); ++i) {
    for (int64_t j = 0; j < m.cols(); ++j) out.push_back(m(i, j));
  }
  return out;
}

TEST(Hippo, MatricesAndEigenbasisAreTheScripts) {
  for (const auto& [size, c] : golden("s5").at("hippo").items()) {
    SCOPED_TRACE(size);
    const HippoMatrices h = hippo_matrices(std::stoll(size));
    EXPECT_LE(relative_error(rows_of(h.A), array(c, "A")), kGolden);
    EXPECT_LE(relative_error(rows_of(h.B), array(c, "B")), kGolden);
    EXPECT_LE(relative_error(rows_of(h.P), array(c, "P")), kGolden);
    const HippoBasis& n = hippo_basis(std::stoll(size));
    EXPECT_LE(relative_error(rows_of(n.lambda), complex_array(c, "Lambda")), kGolden);
    EXPECT_LE(relative_error(rows_of(n.V), complex_array(c, "V")), kGolden);
    EXPECT_LE(relative_error(rows_of(n.B), complex_array(c, "VhB")), kGolden);
    EXPECT_LE(relative_error(rows_of(n.P), complex_array(c, "VhP")), kGolden);
  }
}

}  // namespace
}  // namespace rotrnn::testing
