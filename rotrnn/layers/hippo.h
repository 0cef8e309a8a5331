#pragma once

#include <torch/torch.h>

namespace rotrnn {

/// HiPPO-LegS (Gu et al. 2020): A [N, N], B_n = √(2n+1) and P_n = √(n+½) [N], in double.
/// A + PPᵀ = -½I + a skew matrix is normal: HiPPO-N.
struct HippoLegS {
  torch::Tensor A, B, P;
};
HippoLegS hippo_legs(int64_t N);

/// HiPPO-N in its eigenbasis, one of each conjugate pair: the half with negative imaginary parts,
/// ascending, ⌊N/2⌋ of them (for odd N the real eigenvalue is dropped). Complex double.
struct HippoNormal {
  torch::Tensor lambda;  // [N/2]
  torch::Tensor V;       // [N, N/2], unit columns with a real first entry
  torch::Tensor B, P;    // [N/2], VᴴB and VᴴP
};
HippoNormal hippo_normal(int64_t N);

}  // namespace rotrnn
