#pragma once

// The paper's RotRNN, unfolded: P applied to the state, a dense A = P Θ Pᵀ, a plain loop over time.
// Slow and obvious on purpose; shares nothing with the library but the parameters. Differentiable
// by autograd through every operation.

#include <torch/torch.h>

#include "rotrnn/layers/rotrnn.h"

namespace rotrnn::oracle {

using torch::Tensor;

struct Output {
  Tensor y;      // [tokens, D]
  Tensor x;      // [tokens, N], forward direction
  Tensor final;  // [sequences, N], forward direction
};

inline Tensor rotation_matrix(const Tensor& angles, int64_t dh) {
  Tensor theta = torch::eye(dh, angles.options());
  for (int64_t j = 0; j < dh / 2; ++j) {
    const Tensor c = torch::cos(angles[j]), s = torch::sin(angles[j]);
    const Tensor block = torch::stack({torch::stack({c, -s}), torch::stack({s, c})});
    Tensor left = torch::zeros({dh, 2}, angles.options());
    left.index_put_({2 * j, 0}, 1.0);
    left.index_put_({2 * j + 1, 1}, 1.0);
    const Tensor old = torch::matmul(left, left.t());
    theta = theta - old + torch::matmul(left, torch::matmul(block, left.t()));
  }
  return theta;
}

// Everything in the type of the parameters: in float32 this is the plain float32 evaluation.
inline Output run(const RotRNNImpl& layer, const Packed& u, const Tensor& x0 = {}) {
  const RotRNNOptions& o = layer.options();
  const int64_t H = o.heads, dh = o.head_size();
  const bool log_form = o.init.theta_form == ThetaForm::log;
  const Tensor theta = log_form ? torch::exp(layer.theta) : layer.theta;
  const Tensor gamma = torch::exp(-torch::exp(layer.gamma_log));

  std::vector<Tensor> A, B;
  for (int64_t h = 0; h < H; ++h) {
    const Tensor P = torch::matrix_exp(layer.M[h] - layer.M[h].t());
    const Tensor rotation = torch::matmul(torch::matmul(P, rotation_matrix(theta[h], dh)), P.t());
    const Tensor norm2 = (layer.B[h] * layer.B[h]).sum();
    Tensor a = gamma[h] * rotation, b = layer.B[h];
    if (o.normalisation == Normalisation::xi) {
      b = b * torch::sqrt(o.c * (1 - gamma[h] * gamma[h]) / norm2);
    } else if (o.normalisation == Normalisation::alpha) {
      const Tensor alpha = 1 / torch::sqrt(o.c * gamma[h] * gamma[h] + norm2);
      a = alpha * a;
      b = alpha * b;
    }
    A.push_back(a);
    B.push_back(b);
  }

  auto states = [&](int64_t sequence, bool reverse) {
    const auto& offsets = u.layout->offsets();
    const int64_t begin = offsets[sequence], length = offsets[sequence + 1] - begin;
    std::vector<Tensor> rows(length);
    for (int64_t k = 0; k < length; ++k) {
      const int64_t t = reverse ? length - 1 - k : k;
      std::vector<Tensor> heads;
      for (int64_t h = 0; h < H; ++h) {
        Tensor input = torch::mv(B[h], u.values[begin + t]);
        if (k == 0 && o.stationary_start) input = input / torch::sqrt(1 - gamma[h] * gamma[h]);
        Tensor previous;
        if (k > 0) {
          previous = rows[reverse ? t + 1 : t - 1].narrow(0, h * dh, dh);
        } else if (x0.defined() && !reverse) {
          previous = x0[sequence].narrow(0, h * dh, dh);
        }
        heads.push_back(previous.defined() ? torch::mv(A[h], previous) + input : input);
      }
      rows[t] = torch::cat(heads);
    }
    return torch::stack(rows);
  };

  std::vector<Tensor> x, y, final;
  for (int64_t i = 0; i < u.layout->sequences(); ++i) {
    const Tensor forward = states(i, false);
    const int64_t begin = u.layout->offsets()[i];
    Tensor out =
        torch::matmul(forward, layer.C.t()) + layer.D * u.values.narrow(0, begin, forward.size(0));
    if (o.bidirectional) out = out + torch::matmul(states(i, true), layer.C_reverse.t());
    x.push_back(forward);
    y.push_back(out);
    final.push_back(forward[-1]);
  }
  return {torch::cat(y), torch::cat(x), torch::stack(final)};
}

}  // namespace rotrnn::oracle
