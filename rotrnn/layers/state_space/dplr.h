#pragma once

#include <Eigen/Core>
#include <complex>
#include <cstdint>
#include <utility>
#include <vector>

namespace rotrnn {

/// Complex numbers of all channels, [D, n].
using ComplexRows =
    Eigen::Array<std::complex<double>, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// The state matrix of S4 in every channel: A = Λ - PP*, diagonal plus low rank, on x and its
/// conjugate, with a step Δ of the bilinear rule. Also the gradient of one: ∂/∂Re + i·∂/∂Im.
struct DplrMatrix {
  ComplexRows Lambda, P;  // [D, n]
  Eigen::ArrayXd step;    // [D]

  int64_t width() const { return Lambda.rows(); }
  int64_t states() const { return Lambda.cols(); }

  static DplrMatrix zeros(int64_t width, int64_t states) {
    return {ComplexRows::Zero(width, states), ComplexRows::Zero(width, states),
            Eigen::ArrayXd::Zero(width)};
  }
};

/// The same, discretised: diagonal plus rank one,
///
///     Ā x = λ ⊙ x - F·2Re Σ_n G_n x_n,    λ = 4D0/Δ - 1,    F = D0 ⊙ P,    D0 = 1/(2/Δ - Λ),
///     G = 4/Δ · conj(P) ⊙ D0 / (1 + 2Re Σ_n |P_n|²·D0_n)
///
/// which is (2/Δ - A)⁻¹(2/Δ + A) = 4/Δ·(2/Δ - A)⁻¹ - 1 by the Woodbury identity.
struct DiscreteDplr {
  ComplexRows lambda, F, G;  // [D, n]
};
DiscreteDplr discretise(const DplrMatrix& system);

/// B̄ = (2/Δ - A)⁻¹·2B, and the other way round.
ComplexRows discrete_input(const DplrMatrix& system, const ComplexRows& B);
ComplexRows continuous_input(const DplrMatrix& system, const ComplexRows& B_bar);

/// The adjoint of the latter: adds to that of the system, and gives that of B̄.
ComplexRows continuous_input_backward(const DplrMatrix& system, const ComplexRows& B_bar,
                                      const ComplexRows& gradient, DplrMatrix& out);

/// 2Re Σ_n C_n x_n as a row that meets Ā^length: C·Ā^length, of every one of some C.
std::vector<ComplexRows> times_power(const DplrMatrix& system, const std::vector<ComplexRows>& C,
                                     int64_t length);

/// C from C̃ = C(1 - Ā^length).
std::vector<ComplexRows> plain_output(const DplrMatrix& system,
                                      const std::vector<ComplexRows>& C_tilde, int64_t length);

/// Vectors B and C̃ to read a system with, and which pairs of them are asked for. Also the gradient
/// of them, without pairs.
struct DplrVectors {
  std::vector<ComplexRows> inputs, outputs;
  std::vector<std::pair<size_t, size_t>> pairs;  // places in the two lists
};

/// What a pair gives: a kernel, [length, D], or K_0 alone, [D]; null: not wanted.
struct DplrKernel {
  double *K = nullptr, *first = nullptr;
};

/// The kernels K_l = 2Re(C Ā^l B̄), l < length, of all pairs, by an inverse FFT of
/// K̂_j at ω_j = e^{-2πij/length}. The limit-free form, with q = 1 + ω:
///
///     ρ(a, b) = Σ_n Δ·a_n b_n/(2(1-ω) - qΔΛ_n) + Σ_n Δ·conj(a_n b_n)/(2(1-ω) - qΔ·conj Λ_n)
///     K̂ = 2(ρ(B,C̃) - q·ρ(B,P*)·ρ(P,C̃)/(1 + q·ρ(P,P*)))
///
/// K_0 is the mean of K̂ over all frequencies, of which one of each conjugate pair is there.
void dplr_kernels(const DplrMatrix& system, const DplrVectors& vectors, int64_t length, int threads,
                  const std::vector<DplrKernel>& out);

/// The gradient of what a pair gave; null: 0.
struct DplrKernelGradient {
  const double *K = nullptr, *first = nullptr;
};

/// The adjoint: adds to the gradients of the system and of the vectors, which have the shapes of
/// these. The forward pass is recomputed.
void dplr_kernels_backward(const DplrMatrix& system, const DplrVectors& vectors, int64_t length,
                           int threads, const std::vector<DplrKernelGradient>& gradients,
                           DplrMatrix& dsystem, DplrVectors& dvectors);

}  // namespace rotrnn
