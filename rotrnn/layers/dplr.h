#pragma once

#include <torch/torch.h>

#include <utility>
#include <vector>

namespace rotrnn {

/// The state matrix of S4 in every channel: A = Λ - PP*, diagonal plus low rank, on x and its
/// conjugate, with a step Δ of the bilinear rule. Complex double but for the step; H is D, or 1 for
/// all channels.
struct Dplr {
  torch::Tensor Lambda, P;  // [H, n]
  torch::Tensor step;       // [D, 1], real

  int64_t width() const { return step.size(0); }
  int64_t states() const { return Lambda.size(1); }
};

/// The same, discretised: diagonal plus rank one,
///
///     Ā x = λ ⊙ x - F·2Re Σ_n G_n x_n,    λ = 4D0/Δ - 1,    F = D0 ⊙ P,    D0 = 1/(2/Δ - Λ),
///     G = 4/Δ · conj(P) ⊙ D0 / (1 + 2Re Σ_n |P_n|²·D0_n)
///
/// which is (2/Δ - A)⁻¹(2/Δ + A) = 4/Δ·(2/Δ - A)⁻¹ - 1 by the Woodbury identity.
struct DplrStep {
  torch::Tensor lambda, F, G;  // [D, n]
};
DplrStep discretise(const Dplr& system);

/// B̄ = (2/Δ - A)⁻¹·2B, and the other way round, [D, n]. Differentiable.
torch::Tensor discrete_input(const Dplr& system, const torch::Tensor& B);
torch::Tensor continuous_input(const Dplr& system, const torch::Tensor& B_bar);

/// 2Re Σ_n C_n x_n as a row that meets Ā^length: C·Ā^length, [.., D, n].
torch::Tensor times_power(const Dplr& system, const torch::Tensor& C, int64_t length);

/// C from C̃ = C(1 - Ā^length), [D, n].
torch::Tensor plain_output(const Dplr& system, const torch::Tensor& C_tilde, int64_t length);

/// Vectors B and C̃ [H or D, n] to read a system with, and which pairs of them are asked for.
struct DplrPorts {
  std::vector<torch::Tensor> inputs, outputs;
  std::vector<std::pair<int64_t, int64_t>> pairs;  // places in the two lists
};

/// K̂_j of the kernels K_l = 2Re(C Ā^l B̄), l < length, at ω_j = e^{-2πij/length}, j ≤ length/2:
/// [pairs, D, ⌊length/2⌋ + 1]. The limit-free form, with q = 1 + ω:
///
///     ρ(a, b) = Σ_n Δ·a_n b_n/(2(1-ω) - qΔΛ_n) + Σ_n Δ·conj(a_n b_n)/(2(1-ω) - qΔ·conj Λ_n)
///     K̂ = 2(ρ(B,C̃) - q·ρ(B,P*)·ρ(P,C̃)/(1 + q·ρ(P,P*)))
///
/// Differentiable once. The terms of the sums, n times the size of the result, are made for some
/// channels at a time, and again for the gradients. `fast`: on the CPU kernels may do this.
torch::Tensor dplr_spectrum(const Dplr& system, const DplrPorts& ports, int64_t length, bool fast);

}  // namespace rotrnn
