#include "rotrnn/layers/state_space/hippo.h"

#include <Eigen/Eigenvalues>
#include <complex>
#include <map>
#include <mutex>

namespace rotrnn {
namespace {

using Complex = std::complex<double>;

HippoBasis make_basis(int64_t N) {
  const HippoMatrices h = hippo_matrices(N);
  const Eigen::MatrixXd skew = h.A + h.P * h.P.transpose() + 0.5 * Eigen::MatrixXd::Identity(N, N);
  // -i·skew is Hermitian, so its eigenvalues are real, and come in ascending order.
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXcd> solver(Complex(0, -1) *
                                                               skew.cast<Complex>());
  HippoBasis out;
  const int64_t half = N / 2;
  out.lambda.resize(half);
  out.V = solver.eigenvectors().leftCols(half);
  for (int64_t i = 0; i < half; ++i) {
    out.lambda[i] = Complex(-0.5, solver.eigenvalues()[i]);
    // The solver leaves a phase free. Fixed here, since what is clipped later depends on it.
    const Complex first = out.V(0, i);
    out.V.col(i) *= std::conj(first) / std::abs(first);
  }
  out.B = out.V.adjoint() * h.B.cast<Complex>();
  out.P = out.V.adjoint() * h.P.cast<Complex>();
  return out;
}

}  // namespace

HippoMatrices hippo_matrices(int64_t N) {
  HippoMatrices h{Eigen::MatrixXd::Zero(N, N), Eigen::VectorXd(N), Eigen::VectorXd(N)};
  for (int64_t n = 0; n < N; ++n) {
    h.B[n] = std::sqrt(2 * static_cast<double>(n) + 1);
    h.P[n] = std::sqrt(static_cast<double>(n) + 0.5);
  }
  for (int64_t i = 0; i < N; ++i) {
    for (int64_t j = 0; j < i; ++j) h.A(i, j) = -h.B[i] * h.B[j];
    h.A(i, i) = -static_cast<double>(i) - 1;
  }
  return h;
}

const HippoBasis& hippo_basis(int64_t N) {
  static std::mutex mutex;
  static std::map<int64_t, HippoBasis> made;
  const std::lock_guard lock(mutex);
  const auto found = made.find(N);
  return found != made.end() ? found->second : made.emplace(N, make_basis(N)).first->second;
}

}  // namespace rotrnn
