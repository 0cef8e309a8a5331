#include "rotrnn/fit/ridge.h"

#include <algorithm>
#include <cmath>

#include "rotrnn/base/arena.h"
#include "rotrnn/base/threads.h"
#include "rotrnn/kernels/gemm/cholesky.h"
#include "rotrnn/kernels/gemm/double_outer.h"
#include "rotrnn/kernels/gemm/gram.h"

namespace rotrnn::fit {
namespace {

// What is left of a row's residual when nothing else says anything of it: below, 0/0.
constexpr double kLeastShare = 1e-10;

/// Runs f(begin, end) over parts of [0, n).
template <class F>
void in_parts(int threads, size_t n, const F& f) {
  const auto count = static_cast<size_t>(std::max(1, threads));
  kernels::parallel_for(static_cast<int>(count), [&](int t) {
    const auto part = static_cast<size_t>(t);
    f(n * part / count, n * (part + 1) / count);
  });
}

}  // namespace

RowRidge::RowRidge(const RidgeRows& rows, int threads)
    : rows_(rows), threads_(threads), mean_(rows.outputs, 0.0) {
  const size_t n = rows.n, m = rows.outputs;
  double total = 0;
  for (size_t i = 0; i < n; ++i) total += rows.weights[i];
  for (size_t i = 0; i < n; ++i) {
    root_.push_back(std::sqrt(rows.weights[i]));
    q_.push_back(std::sqrt(rows.weights[i] / total));
    for (size_t k = 0; k < m; ++k) mean_[k] += rows.weights[i] / total * rows.y[i * m + k];
  }
  target_.resize(n * m);
  for (size_t i = 0; i < n; ++i) {
    for (size_t k = 0; k < m; ++k) target_[i * m + k] = root_[i] * (rows.y[i * m + k] - mean_[k]);
  }
  gram_.resize(n * n);
  kernels::gram_of_rows(rows.x, n, rows.features, gram_.data(), threads);
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = i; j < n; ++j) {
      gram_[i * n + j] *= root_[i] * root_[j];
      gram_[j * n + i] = gram_[i * n + j];
    }
  }
  centre();
  for (size_t i = 0; i < n; ++i) scale_ += gram_[i * n + i] / static_cast<double>(n);
  shift_ = std::max(scale_, 1e-6) * static_cast<double>(n);
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = i; j < n; ++j) gram_[i * n + j] += shift_ * q_[i] * q_[j];
  }
}

// G ← (I - qqᵀ)G(I - qqᵀ): columns of float have a mean of 0 to their rounding alone.
void RowRidge::centre() {
  const size_t n = rows_.n;
  std::vector<double> product(n, 0.0);  // Gq
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j < n; ++j) product[i] += gram_[i * n + j] * q_[j];
  }
  double both = 0;
  for (size_t i = 0; i < n; ++i) both += q_[i] * product[i];
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = i; j < n; ++j) {
      gram_[i * n + j] += both * q_[i] * q_[j] - q_[i] * product[j] - product[i] * q_[j];
    }
  }
}

bool RowRidge::solve(double penalty, std::span<const int64_t> groups) {
  const size_t n = rows_.n, m = rows_.outputs;
  std::vector<double> inverse = gram_, half = target_;
  for (size_t i = 0; i < n; ++i) inverse[i * n + i] += penalty;
  if (!kernels::cholesky(inverse.data(), n, n, true, half.data(), m, m, threads_)) return false;
  for (size_t i = 0; i < n; ++i) {
    std::fill(inverse.begin() + static_cast<ptrdiff_t>(i * n + i + 1),
              inverse.begin() + static_cast<ptrdiff_t>((i + 1) * n), 0.0);
  }
  // A⁻¹ = WᵀW, so that A⁻¹Y = Wᵀ(W Y), and W Y is what became of Y.
  dual_.assign(n * m, 0.0);
  kernels::double_outer(dual_.data(), m, inverse.data(), n, half.data(), m, n, n, m, 1, threads_);
  rest_ = penalty / (penalty + shift_);
  std::vector<double> residuals(n * m);
  std::transform(dual_.begin(), dual_.end(), residuals.begin(),
                 [penalty](double a) { return penalty * a; });
  left_out_.resize(n * m);
  if (groups.empty()) {
    leave_out_rows(inverse, residuals, penalty);
  } else {
    leave_out_groups(inverse, residuals, penalty, groups);
  }
  return true;
}

void RowRidge::leave_out_rows(const std::vector<double>& inverse,
                              const std::vector<double>& residuals, double penalty) {
  const size_t n = rows_.n, m = rows_.outputs;
  std::vector<double> diagonal(n, 0.0);
  for (size_t k = 0; k < n; ++k) {
    for (size_t i = 0; i <= k; ++i) diagonal[i] += inverse[k * n + i] * inverse[k * n + i];
  }
  for (size_t i = 0; i < n; ++i) {
    const double share = std::max(kLeastShare, penalty * diagonal[i] - rest_ * q_[i] * q_[i]);
    for (size_t k = 0; k < m; ++k) {
      left_out_[i * m + k] = rows_.y[i * m + k] - residuals[i * m + k] / share / root_[i];
    }
  }
}

void RowRidge::leave_out_groups(const std::vector<double>& inverse,
                                const std::vector<double>& residuals, double penalty,
                                std::span<const int64_t> groups) {
  const size_t n = rows_.n, m = rows_.outputs;
  std::vector<std::vector<size_t>> members;
  for (size_t i = 0; i < n; ++i) {
    const auto group = static_cast<size_t>(groups[i]);
    if (members.size() <= group) members.resize(group + 1);
    members[group].push_back(i);
  }
  for (const std::vector<size_t>& rows : members) {
    const size_t size = rows.size();
    std::vector<double> columns(n * size), block(size * size, 0.0), out(size * m);
    for (size_t k = 0; k < n; ++k) {
      for (size_t i = 0; i < size; ++i) columns[k * size + i] = inverse[k * n + rows[i]];
    }
    kernels::double_outer(block.data(), size, columns.data(), size, columns.data(), size, size, n,
                          size, penalty, threads_);
    for (size_t i = 0; i < size; ++i) {
      for (size_t j = 0; j < size; ++j) block[i * size + j] -= rest_ * q_[rows[i]] * q_[rows[j]];
      std::copy_n(residuals.data() + rows[i] * m, m, out.data() + i * m);
    }
    if (!kernels::cholesky(block.data(), size, size, false, out.data(), m, m, threads_)) {
      // Without the group nothing is known: the mean of the others is 0, as good as any.
      for (size_t i = 0; i < size; ++i) std::copy_n(target_.data() + rows[i] * m, m, &out[i * m]);
    } else {
      kernels::cholesky_back(block.data(), size, size, out.data(), m, m);
    }
    for (size_t i = 0; i < size; ++i) {
      for (size_t k = 0; k < m; ++k) {
        left_out_[rows[i] * m + k] = rows_.y[rows[i] * m + k] - out[i * m + k] / root_[rows[i]];
      }
    }
  }
}

std::vector<double> RowRidge::coefficients() const {
  const size_t n = rows_.n, m = rows_.outputs, F = rows_.features;
  std::vector<double> out(m * F, 0.0);
  in_parts(threads_, F, [&](size_t begin, size_t end) {
    for (size_t i = 0; i < n; ++i) {
      for (size_t k = 0; k < m; ++k) {
        const double a = root_[i] * dual_[i * m + k];
        const float* x = rows_.x + i * F;
        double* row = out.data() + k * F;
        for (size_t f = begin; f < end; ++f) row[f] += a * static_cast<double>(x[f]);
      }
    }
  });
  return out;
}

ColumnRidge::ColumnRidge(size_t features, size_t outputs, int threads)
    : features_(features),
      outputs_(outputs),
      threads_(threads),
      gram_(features * features, 0.0),
      sums_(features, 0.0),
      products_(features * outputs, 0.0),
      totals_(outputs, 0.0) {}

void ColumnRidge::add(float* x, const double* y, const double* weights, size_t n) {
  const size_t F = features_, m = outputs_;
  for (size_t i = 0; i < n; ++i) {
    weight_ += weights[i];
    for (size_t k = 0; k < m; ++k) totals_[k] += weights[i] * y[i * m + k];
  }
  in_parts(threads_, F, [&](size_t begin, size_t end) {
    for (size_t i = 0; i < n; ++i) {
      const double w = weights[i];
      const auto root = static_cast<float>(std::sqrt(w));
      float* row = x + i * F;
      for (size_t f = begin; f < end; ++f) {
        const double value = static_cast<double>(row[f]);
        sums_[f] += w * value;
        for (size_t k = 0; k < m; ++k) products_[f * m + k] += w * value * y[i * m + k];
        row[f] *= root;
      }
    }
  });
  kernels::add_gram_of_columns(x, n, F, gram_.data(), threads_);
}

double ColumnRidge::scale() const {
  double sum = 0;
  for (size_t f = 0; f < features_; ++f) {
    sum += gram_[f * features_ + f] - sums_[f] * sums_[f] / weight_;
  }
  return sum / static_cast<double>(features_) / weight_;
}

bool ColumnRidge::solve(double penalty) {
  const size_t F = features_, m = outputs_;
  work_.resize(F * F);
  in_parts(threads_, F, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      for (size_t j = i; j < F; ++j) {
        work_[i * F + j] = gram_[i * F + j] - sums_[i] * sums_[j] / weight_;
      }
      work_[i * F + i] += penalty * weight_;
    }
  });
  std::vector<double> b(F * m);
  for (size_t f = 0; f < F; ++f) {
    for (size_t k = 0; k < m; ++k) {
      b[f * m + k] = products_[f * m + k] - sums_[f] * totals_[k] / weight_;
    }
  }
  if (!kernels::cholesky(work_.data(), F, F, false, b.data(), m, m, threads_)) return false;
  kernels::cholesky_back(work_.data(), F, F, b.data(), m, m);
  coefficients_.assign(m * F, 0.0);
  intercepts_.assign(m, 0.0);
  for (size_t k = 0; k < m; ++k) {
    double shift = 0;
    for (size_t f = 0; f < F; ++f) {
      coefficients_[k * F + f] = b[f * m + k];
      shift += b[f * m + k] * sums_[f];
    }
    intercepts_[k] = (totals_[k] - shift) / weight_;
  }
  return true;
}

}  // namespace rotrnn::fit
