#include "rotrnn/kernels/maps/expm.h"

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <utility>
#include <vector>

#include "rotrnn/kernels/maps/head_size.h"

namespace rotrnn::kernels {
namespace {

/// A matrix and, unless null, its tangent: the derivative of every formula below comes along by the
/// product rule.
struct Dual {
  double* value;
  double* tangent;
};

/// exp of a d × d matrix. Size: see with_size.
template <class Size>
class Expm {
 public:
  Expm(Size size, bool with_tangent) : d_(size), with_tangent_(with_tangent) {
    const size_t count = size_t{size} * size_t{size};
    memory_.resize(kMatrices * 2 * count);  // one for each thread, grown once
    for (size_t i = 0; i < kMatrices; ++i) {
      double* slot = memory_.data() + 2 * i * count;
      matrix_[i] = {slot, with_tangent ? slot + count : nullptr};
    }
  }

  /// Where the argument goes; overwritten by exponential().
  Dual argument() { return matrix_[0]; }

  Dual exponential() {
    const int s = squarings(matrix_[0].value);
    scale(matrix_[0], std::ldexp(1.0, -s));
    Dual P = taylor(), other = matrix_[0];
    for (int i = 0; i < s; ++i) {
      multiply(other, P, P);
      std::swap(P, other);
    }
    return P;
  }

 private:
  static constexpr size_t kMatrices = 6;
  static constexpr bool kInRegisters = [] {  // larger rows were measured slower: they spill
    if constexpr (std::is_same_v<Size, size_t>)
      return false;
    else
      return Size::value <= 6;
  }();

  size_t count() const { return size_t{d_} * size_t{d_}; }

  void add_product(double* __restrict c, const double* __restrict a,
                   const double* __restrict b) const {
    const size_t d = d_;
    for (size_t i = 0; i < d; ++i) {
      double* to = c + i * d;
      if constexpr (!kInRegisters) {
        for (size_t k = 0; k < d; ++k) {
          for (size_t j = 0; j < d; ++j) to[j] += a[i * d + k] * b[k * d + j];
        }
      } else {
        double row[Size::value];
        std::copy_n(to, Size::value, row);
        for (size_t k = 0; k < Size::value; ++k) {
          for (size_t j = 0; j < Size::value; ++j) row[j] += a[i * d + k] * b[k * d + j];
        }
        std::copy_n(row, Size::value, to);
      }
    }
  }

  void clear(Dual to) const {
    std::fill_n(to.value, count(), 0.0);
    if (with_tangent_) std::fill_n(to.tangent, count(), 0.0);
  }

  void multiply(Dual to, Dual a, Dual b) const {
    clear(to);
    add_product(to.value, a.value, b.value);
    if (!with_tangent_) return;
    add_product(to.tangent, a.tangent, b.value);
    add_product(to.tangent, a.value, b.tangent);
  }

  void scale(Dual a, double by) const {
    for (size_t i = 0; i < count(); ++i) a.value[i] *= by;
    if (!with_tangent_) return;
    for (size_t i = 0; i < count(); ++i) a.tangent[i] *= by;
  }

  void add_scaled(Dual to, double by, Dual from) const {
    for (size_t i = 0; i < count(); ++i) to.value[i] += by * from.value[i];
    if (!with_tangent_) return;
    for (size_t i = 0; i < count(); ++i) to.tangent[i] += by * from.tangent[i];
  }

  int squarings(const double* A) const {
    const size_t d = d_;
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

  /// Paterson-Stockmeyer: Σ A^k/k! to degree 16 as a polynomial in A⁴ with cubic coefficients.
  Dual taylor() {
    double c[17] = {1};
    for (size_t k = 1; k < 17; ++k) c[k] = c[k - 1] / static_cast<double>(k);
    auto [A, A2, A3, A4, sum, other] = matrix_;
    multiply(A2, A, A);
    multiply(A3, A, A2);
    multiply(A4, A2, A2);
    clear(sum);
    add_scaled(sum, c[16], A4);
    for (size_t k = 12;; k -= 4) {
      add_scaled(sum, c[k + 3], A3);
      add_scaled(sum, c[k + 2], A2);
      add_scaled(sum, c[k + 1], A);
      for (size_t i = 0; i < size_t{d_}; ++i) sum.value[i * size_t{d_} + i] += c[k];
      if (k == 0) return sum;
      multiply(other, sum, A4);
      std::swap(sum, other);
    }
  }

  static thread_local std::vector<double> memory_;
  Size d_;
  bool with_tangent_;
  Dual matrix_[kMatrices];
};

template <class Size>
thread_local std::vector<double> Expm<Size>::memory_;

}  // namespace

void expm_skew(const double* A, double* P, size_t d) {
  if (d == 2) {
    const double c = std::cos(A[1]), s = std::sin(A[1]);
    P[0] = c, P[1] = s, P[2] = -s, P[3] = c;
    return;
  }
  with_size(d, [&](auto size) {
    Expm expm(size, /*with_tangent=*/false);
    std::copy_n(A, d * d, expm.argument().value);
    std::copy_n(expm.exponential().value, d * d, P);
  });
}

void expm_skew_backward(const double* A, const double* dP, double* dA, size_t d) {
  if (d == 2) {
    const double c = std::cos(A[1]), s = std::sin(A[1]);
    const double angle = -s * dP[0] + c * dP[1] - c * dP[2] - s * dP[3];
    dA[0] = dA[3] = 0;
    dA[1] = angle / 2, dA[2] = -angle / 2;
    return;
  }
  with_size(d, [&](auto size) {
    Expm expm(size, /*with_tangent=*/true);
    const Dual at = expm.argument();  // the derivative in the direction dP, at Aᵀ
    for (size_t i = 0; i < d * d; ++i) at.value[i] = A[i % d * d + i / d];
    std::copy_n(dP, d * d, at.tangent);
    std::copy_n(expm.exponential().tangent, d * d, dA);
  });
}

}  // namespace rotrnn::kernels
