#pragma once

#include <Eigen/Dense>
#include <unsupported/Eigen/MatrixFunctions>

#include "tests/layers/double_layer.h"

namespace rotrnn::testing {

/// ‖z‖ of every head, [rows, H], of states z [rows, 2S].
inline Doubles head_norms(const Doubles& z, int64_t heads, size_t states) {
  const auto H = static_cast<size_t>(heads), pairs = states / H;
  Doubles out(z.size() / (2 * states) * H);
  for (size_t i = 0; i < z.size(); ++i) {
    out[i / (2 * states) * H + i % states / pairs] += z[i] * z[i];
  }
  for (double& x : out) x = std::sqrt(x);
  return out;
}

inline Doubles head_norms(const DoubleLayer& layer, const Doubles& z) {
  return head_norms(z, layer.options().rotrnn.heads, layer.state_size() / 2);
}

}  // namespace rotrnn::testing

/// The paper's RotRNN, unfolded: P applied to the state, a dense A = P Θ Pᵀ, a plain loop over
/// time. Slow and obvious on purpose; shares nothing with the library but the parameters. All in T:
/// in float it is the plain float32 evaluation.
namespace rotrnn::oracle {

template <class T>
struct Output {
  std::vector<T> y;  // [tokens, D]
  std::vector<T> x;  // [tokens, N], forward direction
};

template <class T>
Output<T> run(const testing::DoubleLayer& layer, const testing::DoubleBatch& batch,
              const testing::Doubles& x_0 = {}) {
  using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  using Vector = Eigen::Matrix<T, Eigen::Dynamic, 1>;
  const LayerOptions& o = layer.options();
  const int64_t H = o.rotrnn.heads, N = o.state, dh = N / H, D = o.width;
  const auto matrix = [&](const char* name, int64_t at, int64_t rows, int64_t columns) -> Matrix {
    return Eigen::Map<const Eigen::Matrix<float, -1, -1, Eigen::RowMajor>>(
               layer.of(name).data() + at * rows * columns, rows, columns)
        .template cast<T>();
  };
  const bool log_form = !layer.of("theta_log").empty();
  const Matrix theta = matrix(log_form ? "theta_log" : "theta", 0, H, dh / 2);

  std::vector<Matrix> A, B;
  std::vector<T> gamma;
  for (int64_t h = 0; h < H; ++h) {
    gamma.push_back(std::exp(-std::exp(matrix("gamma_log", 0, H, 1)(h))));
    const Matrix M = matrix("M", h, dh, dh), skew = M - M.transpose();
    const Matrix P = skew.exp();
    Matrix rotation = Matrix::Identity(dh, dh);
    for (int64_t j = 0; j < dh / 2; ++j) {
      const T angle = log_form ? std::exp(theta(h, j)) : theta(h, j);
      rotation.template block<2, 2>(2 * j, 2 * j) << std::cos(angle), -std::sin(angle),
          std::sin(angle), std::cos(angle);
    }
    Matrix a = gamma.back() * (P * rotation * P.transpose()), b = matrix("B", h, dh, D);
    const T norm2 = b.squaredNorm(), c = static_cast<T>(o.rotrnn.c),
            square = gamma.back() * gamma.back();
    if (o.rotrnn.normalisation == Normalisation::xi) {
      b *= std::sqrt(c * (1 - square) / norm2);
    } else if (o.rotrnn.normalisation == Normalisation::alpha) {
      const T alpha = 1 / std::sqrt(c * square + norm2);
      a *= alpha;
      b *= alpha;
    }
    A.push_back(a);
    B.push_back(b);
  }

  const std::vector<T> inputs = testing::as<T>(batch.u);
  const Matrix u = Eigen::Map<const Matrix>(inputs.data(), batch.offsets.back(), D);
  const auto states = [&](size_t sequence, bool reverse) {
    const int64_t begin = batch.offsets[sequence], length = batch.offsets[sequence + 1] - begin;
    Matrix rows(length, N);
    for (int64_t k = 0; k < length; ++k) {
      const int64_t t = reverse ? length - 1 - k : k;
      for (int64_t h = 0; h < H; ++h) {
        const auto own = static_cast<size_t>(h);
        Vector x = B[own] * u.row(begin + t).transpose();
        if (k == 0 && o.rotrnn.stationary_start) x /= std::sqrt(1 - gamma[own] * gamma[own]);
        Vector before = Vector::Zero(dh);
        if (k > 0) {
          before = rows.row(reverse ? t + 1 : t - 1).segment(h * dh, dh).transpose();
        } else if (!x_0.empty() && !reverse) {
          const double* start = x_0.data() + static_cast<int64_t>(sequence) * N + h * dh;
          before = Eigen::Map<const Eigen::VectorXd>(start, dh).template cast<T>();
        }
        rows.row(t).segment(h * dh, dh) = (A[own] * before + x).transpose();
      }
    }
    return rows;
  };

  Output<T> out;
  const Matrix C = matrix("C", 0, D, N), skip = matrix("D", 0, 1, D);
  for (size_t i = 0; i + 1 < batch.offsets.size(); ++i) {
    const Matrix x = states(i, false);
    Matrix y = x * C.transpose();
    y +=
        (u.middleRows(batch.offsets[i], x.rows()).array().rowwise() * skip.row(0).array()).matrix();
    if (o.bidirectional) y += states(i, true) * matrix("C_reverse", 0, D, N).transpose();
    out.x.insert(out.x.end(), x.data(), x.data() + x.size());
    out.y.insert(out.y.end(), y.data(), y.data() + y.size());
  }
  return out;
}

}  // namespace rotrnn::oracle
