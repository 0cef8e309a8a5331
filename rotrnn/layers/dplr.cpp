#include "rotrnn/layers/dplr.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "rotrnn/layers/dplr_fused.h"

namespace rotrnn {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// 2Re Σ_n of [.., n].
Tensor twice_real_sum(const Tensor& x) {
  return 2 * torch::real(x).sum(-1, /*keepdim=*/true);
}

Tensor resolvent(const Dplr& s) {
  return 1 / (2 / s.step - s.Lambda);
}

// C·Ā for rows C [.., D, n].
Tensor times_step(const DplrStep& s, const Tensor& C) {
  return C * s.lambda - s.G * twice_real_sum(C * s.F);
}

// A complex row c as a real one for [Re x; Im x]: 2Re(c·x) = 2Re c·Re x - 2Im c·Im x.
Tensor to_real_row(const Tensor& c) {
  return torch::cat({2 * torch::real(c), -2 * torch::imag(c)}, -1);
}

Tensor to_complex_row(const Tensor& row) {
  const int64_t n = row.size(-1) / 2;
  return torch::complex(row.narrow(-1, 0, n) / 2, -row.narrow(-1, n, n) / 2);
}

// Ā^length on [Re x; Im x], [channels, 2n, 2n], by squaring.
Tensor dense_power(const DplrStep& s, int64_t length) {
  const int64_t n = s.lambda.size(1);
  const Tensor unit = torch::eye(2 * n, torch::real(s.F).options()).unsqueeze(1);  // as rows
  Tensor square = to_real_row(times_step(s, to_complex_row(unit))).transpose(0, 1);
  Tensor power;
  for (int64_t left = length; left > 0; left /= 2) {
    if (left % 2 == 1) power = power.defined() ? torch::matmul(power, square) : square;
    if (left > 1) square = torch::matmul(square, square);
  }
  return power;
}

DplrStep channels_of(const DplrStep& s, int64_t begin, int64_t count) {
  return {s.lambda.narrow(0, begin, count), s.F.narrow(0, begin, count),
          s.G.narrow(0, begin, count)};
}

// f(begin, count) for groups of channels whose dense matrices take about 64 MB, results one after
// the other.
template <typename F>
Tensor for_dense_groups(int64_t width, int64_t n, int64_t dimension, const F& f) {
  const int64_t count = std::max<int64_t>(1, (int64_t{1} << 23) / (4 * n * n));
  std::vector<Tensor> parts;
  for (int64_t begin = 0; begin < width; begin += count) {
    parts.push_back(f(begin, std::min(count, width - begin)));
  }
  return torch::cat(parts, dimension);
}

// -------------------------------------------------------------------------------- the kernel

// Terms of the sums that are made at once: 8 MB of complex numbers, of which there are about ten.
constexpr int64_t kTerms = 1 << 19;

// K̂ [pairs, channels, frequencies]. `tensors`: Λ, P, Δ, the inputs and the outputs.
Tensor spectrum_of(const variable_list& tensors, int64_t inputs, const std::vector<int64_t>& pairs,
                   int64_t length) {
  const Tensor &Lambda = tensors[0], &P = tensors[1], &step = tensors[2];
  const Tensor angle = -2 * std::numbers::pi / static_cast<double>(length) *
                       torch::arange(length / 2 + 1, torch::kFloat64).to(step.device());
  const Tensor omega = torch::polar(torch::ones_like(angle), angle), q = 1 + omega;
  auto terms = [&](const Tensor& rate) {  // [channels, n, frequencies]
    return step.unsqueeze(2) / (2 * (1 - omega) - q * (step * rate).unsqueeze(2));
  };
  const Tensor one = terms(Lambda), other = terms(torch::conj(Lambda));
  auto rho = [&](const Tensor& a, const Tensor& b) {  // [channels, frequencies]
    const Tensor v = (a * b).unsqueeze(1);
    return (torch::bmm(v, one) + torch::bmm(torch::conj(v), other)).squeeze(1);
  };
  const Tensor low = q / (1 + q * rho(P, torch::conj(P)));
  variable_list from, to, out;
  for (int64_t i = 3; i < static_cast<int64_t>(tensors.size()); ++i) {
    if (i < 3 + inputs) {
      from.push_back(rho(tensors[i], torch::conj(P)) * low);
    } else {
      to.push_back(rho(P, tensors[i]));
    }
  }
  for (size_t i = 0; i < pairs.size(); i += 2) {
    const int64_t b = pairs[i], c = pairs[i + 1];
    out.push_back(2 * (rho(tensors[3 + b], tensors[3 + inputs + c]) - from[b] * to[c]));
  }
  return torch::stack(out);
}

struct Spectrum : torch::autograd::Function<Spectrum> {
  static Tensor forward(AutogradContext* context, at::TensorList tensors, int64_t inputs,
                        const std::vector<int64_t>& pairs, int64_t length) {
    context->save_for_backward(tensors.vec());
    context->saved_data["inputs"] = inputs;
    context->saved_data["pairs"] = pairs;
    context->saved_data["length"] = length;
    variable_list parts;
    for_groups(tensors.vec(), length, [&](const variable_list& group, int64_t) {
      parts.push_back(spectrum_of(group, inputs, pairs, length));
    });
    return torch::cat(parts, 1);
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    const auto pairs = context->saved_data["pairs"].toIntVector();
    const int64_t inputs = context->saved_data["inputs"].toInt();
    const int64_t length = context->saved_data["length"].toInt();
    const variable_list saved = context->get_saved_variables();
    std::vector<variable_list> parts(saved.size());
    for_groups(saved, length, [&](const variable_list& group, int64_t begin) {
      variable_list leaves;
      for (const Tensor& t : group) leaves.push_back(t.detach().requires_grad_());
      const torch::AutoGradMode record(true);
      const Tensor out = spectrum_of(leaves, inputs, pairs, length);
      const auto given = torch::autograd::grad(
          {out}, leaves, {grads[0].narrow(1, begin, out.size(1))}, /*retain_graph=*/c10::nullopt,
          /*create_graph=*/false, /*allow_unused=*/true);
      for (size_t i = 0; i < given.size(); ++i) {
        parts[i].push_back(given[i].defined() ? given[i] : torch::zeros_like(leaves[i]));
      }
    });
    variable_list out;
    for (const variable_list& part : parts) out.push_back(torch::cat(part));
    out.resize(out.size() + 3);  // inputs, pairs and length have no gradient
    return out;
  }

 private:
  template <typename F>
  static void for_groups(const variable_list& tensors, int64_t length, const F& f) {
    const int64_t width = tensors[0].size(0), n = tensors[0].size(1);
    const int64_t count = std::max<int64_t>(1, kTerms / (n * (length / 2 + 1)));
    for (int64_t begin = 0; begin < width; begin += count) {
      variable_list group;
      for (const Tensor& t : tensors) {
        group.push_back(t.narrow(0, begin, std::min(count, width - begin)));
      }
      f(group, begin);
    }
  }
};

}  // namespace

DplrStep discretise(const Dplr& s) {
  const Tensor D0 = resolvent(s);
  const Tensor Ph = torch::conj(s.P);
  const Tensor G = 4 / s.step * Ph * D0 / (1 + twice_real_sum(s.P * Ph * D0));
  return {4 / s.step * D0 - 1, D0 * s.P, G};
}

Tensor discrete_input(const Dplr& s, const Tensor& B) {
  // G is 4/Δ times what reads the low rank.
  const DplrStep step = discretise(s);
  return 2 * resolvent(s) * B - step.F * twice_real_sum(step.G * B) * s.step / 2;
}

Tensor continuous_input(const Dplr& s, const Tensor& B_bar) {
  return (B_bar / resolvent(s) + s.P * twice_real_sum(torch::conj(s.P) * B_bar)) / 2;
}

Tensor times_power(const Dplr& s, const Tensor& C, int64_t length) {
  const DplrStep step = discretise(s);
  // Step by step, or by dense matrices: a step is some ten passes over n numbers, 3 ns each; a
  // product is 16n³ operations, twenty a ns.
  const auto n = static_cast<double>(s.states()), L = static_cast<double>(length);
  if (45 * L < n * n * std::log2(L + 1)) {
    Tensor row = C;
    for (int64_t i = 0; i < length; ++i) row = times_step(step, row);
    return row;
  }
  const Tensor rows = to_real_row(C).unsqueeze(-2);
  return to_complex_row(for_dense_groups(s.width(), s.states(), -3, [&](int64_t at, int64_t count) {
                          const Tensor power = dense_power(channels_of(step, at, count), length);
                          return torch::matmul(rows.narrow(-3, at, count), power);
                        }).squeeze(-2));
}

Tensor plain_output(const Dplr& s, const Tensor& C_tilde, int64_t length) {
  const DplrStep step = discretise(s);
  const Tensor rows = to_real_row(C_tilde).unsqueeze(-1);
  const Tensor unit = torch::eye(2 * s.states(), s.step.options());
  return to_complex_row(for_dense_groups(s.width(), s.states(), 0, [&](int64_t at, int64_t count) {
                          const Tensor power = dense_power(channels_of(step, at, count), length);
                          return torch::linalg_solve((unit - power).transpose(1, 2),
                                                     rows.narrow(0, at, count));
                        }).squeeze(-1));
}

Tensor dplr_spectrum(const Dplr& s, const DplrPorts& ports, int64_t length, bool fast) {
  if (fast && s.step.device().is_cpu()) return fused_spectrum(s, ports, length);
  const std::vector<int64_t> shape{s.width(), s.states()};
  variable_list tensors{s.Lambda.expand(shape), s.P.expand(shape), s.step};
  for (const Tensor& t : ports.inputs) tensors.push_back(t.expand(shape));
  for (const Tensor& t : ports.outputs) tensors.push_back(t.expand(shape));
  std::vector<int64_t> pairs;
  for (const auto& [input, output] : ports.pairs) pairs.insert(pairs.end(), {input, output});
  const at::TensorList list(tensors);
  return Spectrum::apply(list, static_cast<int64_t>(ports.inputs.size()), pairs, length);
}

}  // namespace rotrnn
