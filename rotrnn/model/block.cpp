#include "rotrnn/model/block.h"

#include <fmt/format.h>

#include <stdexcept>
#include <tuple>

#include "rotrnn/kernels/random.h"

namespace rotrnn {

using torch::Tensor;

Tensor dropout_mask(const Pass& pass, int64_t block, int64_t site, int64_t width,
                    double probability, const torch::TensorOptions& options) {
  const auto threshold = static_cast<uint32_t>(probability * 0x1p32);
  const double keep = 1 / (1 - probability);
  std::vector<double> mask;
  mask.reserve(pass.sequences.size() * width);
  for (int64_t sequence : pass.sequences) {
    Random random(pass.seed, RandomSite::dropout,
                  {static_cast<uint64_t>(pass.step), static_cast<uint64_t>(block),
                   static_cast<uint64_t>(site), static_cast<uint64_t>(sequence)});
    for (int64_t i = 0; i < width; ++i) mask.push_back(random.bits() < threshold ? 0 : keep);
  }
  return torch::tensor(mask, torch::kFloat64).view({-1, width}).to(options);
}

BlockImpl::BlockImpl(const ModelOptions& options, int64_t index, uint64_t seed)
    : options_(options), index_(index) {
  const int64_t width = options.width;
  norm = register_module("norm", Norm(options.norm, width, options.norm_momentum));
  layer = register_module("layer", make_layer(options, seed, static_cast<uint64_t>(index)));
  if (has_value(options.activation)) {
    value = register_module("value", torch::nn::Linear(width, width));
  }
  if (options.activation != Activation::gelu) {
    gate = register_module("gate", torch::nn::Linear(width, width));
  }
}

Tensor BlockImpl::mask(const Layout& layout, const Pass& pass, int64_t site,
                       const torch::TensorOptions& options) {
  if (!is_training() || pass.watching || options_.dropout == 0) return {};
  if (static_cast<int64_t>(pass.sequences.size()) != layout.sequences()) {
    throw std::invalid_argument(fmt::format("dropout: {} sequence numbers for a batch of {}",
                                            pass.sequences.size(), layout.sequences()));
  }
  return dropout_mask(pass, index_, site, options_.width, options_.dropout, options);
}

Tensor BlockImpl::drop(const Tensor& x, const Layout& layout, const Pass& pass, int64_t site) {
  const Tensor m = mask(layout, pass, site, x.options());
  return m.defined() ? x * m.index_select(0, layout.sequence()) : x;
}

FusedBlock BlockImpl::fused(const System& system, const Layout& layout, const Pass& pass,
                            const States& initial) {
  FusedBlock block;
  block.system = system;
  std::tie(block.norm_weight, block.norm_bias) = norm->affine();
  if (value) {
    block.value_weight = value->weight;
    block.value_bias = value->bias;
  }
  if (gate) {
    block.gate_weight = gate->weight;
    block.gate_bias = gate->bias;
  }
  const auto options = torch::TensorOptions(torch::kFloat32);
  if (gate) block.mask1 = mask(layout, pass, 0, options);
  if (options_.activation != Activation::exact_glu) block.mask2 = mask(layout, pass, 1, options);
  block.initial = initial;
  return block;
}

Tensor BlockImpl::activate(const Tensor& x, const Layout& layout, const Pass& pass) {
  const bool exact = options_.activation == Activation::exact_glu;
  const Tensor g = torch::gelu(x, exact ? "none" : "tanh");
  if (options_.activation == Activation::gelu) return drop(g, layout, pass, 1);
  const Tensor h = drop(g, layout, pass, 0);
  const Tensor gated = torch::sigmoid(gate(h));
  switch (options_.activation) {
    case Activation::exact_glu:  // nothing is dropped behind the gate
      return value(h) * gated;
    case Activation::full_glu:
      return drop(value(h) * gated, layout, pass, 1);
    case Activation::half_glu2:
      return drop(x * gated, layout, pass, 1);
    default:
      return drop(h * gated, layout, pass, 1);
  }
}

Tensor BlockImpl::forward(const Packed& x, const Pass& pass, const States& initial,
                          SystemOutput* seen, bool fast, const kernels::Reduce& reduce) {
  auto normed = [&](const Tensor& t) { return norm(t, !pass.watching, reduce); };
  const Packed input = options_.prenorm ? x.with(normed(x.values)) : x;
  SystemOutput run = layer->forward(input, initial, fast);
  const Tensor sum = x.values + activate(run.y, *x.layout, pass);
  if (seen) *seen = std::move(run);
  return options_.prenorm ? sum : normed(sum);
}

}  // namespace rotrnn
