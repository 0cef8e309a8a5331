#pragma once

#include <Eigen/Core>
#include <cstdint>

namespace rotrnn {

/// HiPPO-LegS (Gu et al. 2020): A [N, N], B_n = √(2n+1) and P_n = √(n+½) [N].
/// A + PPᵀ = -½I + a skew matrix is normal: HiPPO-N.
struct HippoMatrices {
  Eigen::MatrixXd A;
  Eigen::VectorXd B, P;
};
HippoMatrices hippo_matrices(int64_t N);

/// HiPPO-N in its eigenbasis, one of each conjugate pair: the half with negative imaginary parts,
/// ascending, ⌊N/2⌋ of them (for odd N the real eigenvalue is dropped).
struct HippoBasis {
  Eigen::VectorXcd lambda;  // [N/2]
  Eigen::MatrixXcd V;       // [N, N/2], unit columns with a real positive first entry
  Eigen::VectorXcd B, P;    // [N/2], VᴴB and VᴴP
};

/// Computed once per N and kept for the process.
const HippoBasis& hippo_basis(int64_t N);

}  // namespace rotrnn
