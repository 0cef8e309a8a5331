#include "rotrnn/training/observe.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <stdexcept>

#include "rotrnn/layers/channel_layer.h"

namespace rotrnn {
namespace {

using Json = nlohmann::ordered_json;
using torch::Tensor;

constexpr int64_t kMost = 128;  // eigenvalues of a block

// Six digits are more than any picture shows, and a third of the bytes.
Json rounded(const Tensor& values) {
  const Tensor v = values.to(torch::kFloat64).contiguous();
  Json out = Json::array();
  for (int64_t i = 0; i < v.numel(); ++i) {
    out.push_back(std::strtod(fmt::format("{:.6g}", v.data_ptr<double>()[i]).c_str(), nullptr));
  }
  return out;
}

// Evenly spaced numbers below n, at most `most`.
Tensor some(int64_t n, int64_t most) {
  const int64_t count = std::min(n, most);
  return torch::arange(count, torch::kInt64) * n / std::max<int64_t>(count, 1);
}

Json layer_json(const Tensor& re, const Tensor& im, int64_t of) {
  const Tensor kept = some(re.numel(), kMost).to(torch::kInt64);
  return {{"re", rounded(re.index_select(0, kept))},
          {"im", rounded(im.index_select(0, kept))},
          {"of", of}};
}

// x ← λ ⊙ x + p·Re(q·x) is linear in [Re x; Im x] only: the matrix of that, [channels, 2n, 2n].
Tensor real_matrix(const Tensor& lambda, const Tensor& p, const Tensor& q) {
  const Tensor re = torch::real(lambda), im = torch::imag(lambda);
  const auto outer = [&](const Tensor& column, const Tensor& row) {
    return column.unsqueeze(-1) * row.unsqueeze(-2);
  };
  const Tensor p_re = torch::real(p), p_im = torch::imag(p), q_re = torch::real(q),
               q_im = torch::imag(q);
  const Tensor above = torch::cat(
      {torch::diag_embed(re) + outer(p_re, q_re), -torch::diag_embed(im) - outer(p_re, q_im)}, -1);
  const Tensor below = torch::cat(
      {torch::diag_embed(im) + outer(p_im, q_re), torch::diag_embed(re) - outer(p_im, q_im)}, -1);
  return torch::cat({above, below}, -2);
}

Json channel_json(const ChannelLayer& layer) {
  const ChannelRecurrence r = layer.recurrence();
  const int64_t channels = r.lambda.size(0), n = r.lambda.size(1);
  const bool mixed = r.p.defined();
  const int64_t each = mixed ? 2 * n : n;  // eigenvalues of a channel
  const Tensor kept = some(channels, std::max<int64_t>(1, kMost / each)).to(torch::kInt64);
  Tensor values = r.lambda.index_select(0, kept);
  if (mixed) {
    values = torch::linalg_eigvals(
        real_matrix(values, r.p.index_select(0, kept), r.q.index_select(0, kept)));
    // Their order is any; by angle they are the same ones at the next look.
    values = values.gather(-1, torch::angle(values).argsort(int64_t{-1}, false));
  }
  values = values.reshape({-1});
  return layer_json(torch::real(values), torch::imag(values), channels * each);
}

Json layer_lambda(const Layer& layer) {
  if (const auto* diagonal = dynamic_cast<const DiagonalLayer*>(&layer)) {
    const System s = diagonal->system();
    if (s.lambda_re.dim() != 1) return nullptr;
    return layer_json(s.lambda_re, s.lambda_im, s.lambda_re.numel());
  }
  if (const auto* channels = dynamic_cast<const ChannelLayer*>(&layer)) {
    try {
      return channel_json(*channels);
    } catch (const std::invalid_argument&) {
      return nullptr;  // it has no recurrence
    }
  }
  return nullptr;
}

}  // namespace

Json lambda_line(const SequenceModelImpl& model, int64_t step) {
  torch::NoGradGuard no_grad;
  Json layers = Json::array();
  for (const auto& block : model.blocks) layers.push_back(layer_lambda(*block->layer));
  return {{"step", step}, {"split", "lambda"}, {"layers", std::move(layers)}};
}

Json norms_line(SequenceModelImpl& model, const Packed& input, int64_t step) {
  Json whole = Json::array(), head = Json::array();
  try {
    for (const Tensor& norms : model.state_norms(input)) {
      whole.push_back(norms.norm(2, -1).mean().item<double>());
      head.push_back(norms.mean().item<double>());
    }
  } catch (const std::invalid_argument&) {
    return nullptr;
  }
  return {{"step", step}, {"split", "norms"}, {"whole", whole}, {"head", head}};
}

}  // namespace rotrnn
