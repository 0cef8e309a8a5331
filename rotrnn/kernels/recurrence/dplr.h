#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace rotrnn::kernels {

/// The kernel of S4 at its frequencies (layers/dplr.h has the equations), arranged for real
/// arithmetic. With φ = πj/length, s = sin φ, c = cos φ, μ = ΔΛ, and of a product v = a·b of a
/// vector that goes in and one that reads
///
///     r(v) = Σ_n (2is·Re v_n - c·Re(v_n conj μ_n)) / (c²|μ_n|² - 4s² - 4isc·Re μ_n)
///
/// ρ = Δe^{iφ}r, and q = 2c·e^{-iφ}, so that
///
///     K̂ = 2Δe^{iφ}(r(B C̃) - κ·r(B P*)·r(P C̃)),    κ = 2cΔ/(1 + 2cΔ·r(P P*))
struct DplrSizes {
  size_t D = 0, n = 0, length = 0;
  size_t inputs = 0, outputs = 0;                // vectors B and C̃
  std::vector<std::pair<size_t, size_t>> pairs;  // of them, those that are asked for
  int threads = 1;

  size_t frequencies() const { return length / 2 + 1; }
  /// The products, in this order: P P*, B P* of every input, P C̃ of every output, B C̃ of the pairs.
  size_t columns() const { return 1 + inputs + outputs + pairs.size(); }
  /// Numbers for a state: |μ|², Re μ, and of every column Re v, Re(v conj μ).
  size_t terms() const { return 2 + 2 * columns(); }
};

/// spectrum [pairs, D, frequencies] (re, im) from terms [D, n, terms] and Δ [D].
void dplr_forward(const DplrSizes& sizes, const double* terms, const double* step,
                  double* spectrum);

/// The gradients of terms and Δ from that of the spectrum (d/dRe, d/dIm); what the forward pass
/// computed is computed again.
void dplr_backward(const DplrSizes& sizes, const double* terms, const double* step,
                   const double* gradient, double* dterms, double* dstep);

}  // namespace rotrnn::kernels
