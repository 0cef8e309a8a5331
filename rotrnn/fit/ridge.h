#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace rotrnn::fit {

/// Ridge regression with weights and an intercept that is not penalised:
///
///     minimise  Σ_i w_i |y_i - b - βᵀx_i|² + α|β|²
///
/// Columns of X have the weighted mean 0, so b is the weighted mean of y. With the rows scaled,
/// X_s = √w ⊙ X and Y_s = √w ⊙ (Y - b), and q = √w/|√w|:
///
///     residuals of the fit        (I - S)Y_s,   I - S = αA⁻¹ - α/(α + c)·qqᵀ
///                                 A = X_s X_sᵀ + αI + c·qqᵀ,   for any c: X_sᵀq = 0
///     left out, rows B together   (I - S)_BB⁻¹ [(I - S)Y_s]_B
///
/// which is exact, what was learned from the features (means, scales, thresholds) being given.
/// A single row is the usual e_i/(1 - S_ii). With c = 0 the two terms of I - S cancel to the last
/// digits when α is small; with a large c there is nothing to cancel.
struct RidgeRows {
  size_t n = 0, features = 0, outputs = 0;
  const float* x = nullptr;         // [n, features]
  const double* y = nullptr;        // [n, outputs]
  const double* weights = nullptr;  // [n], above 0
};

/// Through the Gram matrix of the rows [n, n]: for n up to about the number of features. The cost
/// is n²·features once and n³ per penalty.
class RowRidge {
 public:
  RowRidge(const RidgeRows& rows, int threads);

  /// The mean diagonal of the Gram matrix: what penalties are measured by.
  double scale() const { return scale_; }

  /// Solves for one penalty. With groups [n] (numbers from 0 on), examples of a group are left out
  /// together. False: the penalty is too small for the rounding of the Gram matrix.
  bool solve(double penalty, std::span<const int64_t> groups);

  /// Predictions [n, outputs] of the last solve, by a fit without the example (or its group).
  const std::vector<double>& left_out() const { return left_out_; }

  /// Weights [outputs, features] and intercepts of the last solve.
  std::vector<double> coefficients() const;
  const std::vector<double>& intercepts() const { return mean_; }

 private:
  void centre();
  void leave_out_rows(const std::vector<double>& inverse, const std::vector<double>& residuals,
                      double penalty);
  void leave_out_groups(const std::vector<double>& inverse, const std::vector<double>& residuals,
                        double penalty, std::span<const int64_t> groups);

  RidgeRows rows_;
  int threads_;
  double scale_ = 0, shift_ = 0;                // shift: c
  double rest_ = 0;                             // α/(α + c) of the last solve
  std::vector<double> root_, q_, mean_, gram_;  // √w, q, b
  std::vector<double> target_, dual_, left_out_;
};

/// Through the Gram matrix of the features, for rows that come block by block: the memory does not
/// depend on their number. Columns are centred at the end, so blocks may have means that are small
/// beside their deviations.
class ColumnRidge {
 public:
  ColumnRidge(size_t features, size_t outputs, int threads);

  /// x [n, features], scaled by √w in place; y [n, outputs].
  void add(float* x, const double* y, const double* weights, size_t n);

  /// Solves for one penalty, which is times the sum of the weights. False: too small for rounding.
  bool solve(double penalty);

  /// The mean diagonal of the Gram matrix, over the sum of the weights.
  double scale() const;

  /// Weights [outputs, features] and intercepts of the last solve.
  const std::vector<double>& coefficients() const { return coefficients_; }
  const std::vector<double>& intercepts() const { return intercepts_; }

 private:
  size_t features_, outputs_;
  int threads_;
  double weight_ = 0;
  std::vector<double> gram_, sums_;        // Σw·xxᵀ, Σw·x
  std::vector<double> products_, totals_;  // Σw·x·y [features, outputs], Σw·y
  std::vector<double> work_, coefficients_, intercepts_;
};

}  // namespace rotrnn::fit
