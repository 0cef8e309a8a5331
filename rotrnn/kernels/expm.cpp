#include "rotrnn/kernels/expm.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace rotrnn::kernels {
namespace {

/// c += a·b for d × d matrices.
void add_product(double* __restrict c, const double* __restrict a, const double* __restrict b,
                 size_t d) {
  for (size_t i = 0; i < d; ++i) {
    double* row = c + i * d;
    for (size_t k = 0; k < d; ++k) {
      const double x = a[i * d + k];
      const double* from = b + k * d;
      for (size_t j = 0; j < d; ++j) row[j] += x * from[j];
    }
  }
}

/// A matrix and, if it has one, its tangent: the derivative of every formula below comes along by
/// the product rule.
struct Dual {
  std::vector<double> value, tangent;
};

Dual multiply(const Dual& a, const Dual& b, size_t d) {
  Dual c{std::vector<double>(d * d, 0.0), std::vector<double>(a.tangent.size(), 0.0)};
  add_product(c.value.data(), a.value.data(), b.value.data(), d);
  if (!c.tangent.empty()) {
    add_product(c.tangent.data(), a.tangent.data(), b.value.data(), d);
    add_product(c.tangent.data(), a.value.data(), b.tangent.data(), d);
  }
  return c;
}

void add_scaled(Dual& to, double scale, const Dual& from) {
  for (size_t i = 0; i < to.value.size(); ++i) to.value[i] += scale * from.value[i];
  for (size_t i = 0; i < to.tangent.size(); ++i) to.tangent[i] += scale * from.tangent[i];
}

/// Paterson-Stockmeyer: Σ A^k/k! to degree 16 as a polynomial in A⁴ with cubic coefficients.
Dual taylor(const Dual& A, size_t d) {
  double c[17] = {1};
  for (size_t k = 1; k < 17; ++k) c[k] = c[k - 1] / static_cast<double>(k);
  const Dual A2 = multiply(A, A, d), A3 = multiply(A, A2, d), A4 = multiply(A2, A2, d);
  Dual sum{std::vector<double>(d * d, 0.0), std::vector<double>(A.tangent.size(), 0.0)};
  add_scaled(sum, c[16], A4);
  for (size_t k = 12;; k -= 4) {
    add_scaled(sum, c[k + 3], A3);
    add_scaled(sum, c[k + 2], A2);
    add_scaled(sum, c[k + 1], A);
    for (size_t i = 0; i < d; ++i) sum.value[i * d + i] += c[k];
    if (k == 0) return sum;
    sum = multiply(sum, A4, d);
  }
}

int squarings(const double* A, size_t d) {
  double norm = 0;
  for (size_t j = 0; j < d; ++j) {
    double column = 0;
    for (size_t i = 0; i < d; ++i) column += std::abs(A[i * d + j]);
    norm = std::max(norm, column);
  }
  int s = 0;
  for (; norm > 0.7 && s < 1000; norm /= 2) ++s;
  return s;
}

Dual expm(Dual A, size_t d) {
  const int s = squarings(A.value.data(), d);
  const double scale = std::ldexp(1.0, -s);
  for (double& x : A.value) x *= scale;
  for (double& x : A.tangent) x *= scale;
  Dual P = taylor(A, d);
  for (int i = 0; i < s; ++i) P = multiply(P, P, d);
  return P;
}

}  // namespace

void expm_skew(const double* A, double* P, size_t d) {
  if (d == 2) {
    const double c = std::cos(A[1]), s = std::sin(A[1]);
    P[0] = c, P[1] = s, P[2] = -s, P[3] = c;
    return;
  }
  const Dual result = expm({std::vector<double>(A, A + d * d), {}}, d);
  std::copy(result.value.begin(), result.value.end(), P);
}

void expm_skew_backward(const double* A, const double* dP, double* dA, size_t d) {
  if (d == 2) {
    const double c = std::cos(A[1]), s = std::sin(A[1]);
    const double angle = -s * dP[0] + c * dP[1] - c * dP[2] - s * dP[3];
    dA[0] = dA[3] = 0;
    dA[1] = angle / 2, dA[2] = -angle / 2;
    return;
  }
  Dual transposed{std::vector<double>(d * d), std::vector<double>(dP, dP + d * d)};
  for (size_t i = 0; i < d * d; ++i) transposed.value[i] = A[i % d * d + i / d];
  const Dual result = expm(std::move(transposed), d);
  std::copy(result.tangent.begin(), result.tangent.end(), dA);
}

}  // namespace rotrnn::kernels
