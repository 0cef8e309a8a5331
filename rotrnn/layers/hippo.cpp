#include "rotrnn/layers/hippo.h"

namespace rotrnn {

using torch::Tensor;

HippoLegS hippo_legs(int64_t N) {
  const Tensor n = torch::arange(N, torch::kFloat64);
  HippoLegS h;
  h.B = torch::sqrt(2 * n + 1);
  h.P = torch::sqrt(n + 0.5);
  h.A = -torch::tril(torch::outer(h.B, h.B), -1) - torch::diag(n + 1);
  return h;
}

HippoNormal hippo_normal(int64_t N) {
  const torch::NoGradGuard no_grad;
  const HippoLegS h = hippo_legs(N);
  const Tensor skew = h.A + torch::outer(h.P, h.P) + 0.5 * torch::eye(N, torch::kFloat64);
  // -i·skew is Hermitian, so its eigenvalues are real, and come in ascending order.
  const auto [values, vectors] =
      torch::linalg_eigh(torch::complex(torch::zeros_like(skew), -skew), "L");
  HippoNormal out;
  const Tensor kept = values.narrow(0, 0, N / 2);
  out.lambda = torch::complex(torch::full_like(kept, -0.5), kept);
  const Tensor V = vectors.narrow(1, 0, N / 2);
  // The solver leaves a phase free. Fixed here, since what is clipped later depends on it.
  out.V = V * torch::conj(torch::sgn(V[0]));
  const Tensor Vh = torch::conj(out.V).t();
  out.B = torch::mv(Vh, h.B.to(torch::kComplexDouble));
  out.P = torch::mv(Vh, h.P.to(torch::kComplexDouble));
  return out;
}

}  // namespace rotrnn
