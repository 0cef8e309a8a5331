#include "rotrnn/model/sequence_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <stdexcept>

#include "rotrnn/kernels/random.h"
#include "rotrnn/kernels/threads.h"

namespace rotrnn {
namespace {

using torch::Tensor;

uint64_t name_hash(const std::string& name) {  // FNV-1a
  uint64_t hash = 0xcbf29ce484222325u;
  for (unsigned char byte : name) hash = (hash ^ byte) * 0x100000001b3u;
  return hash;
}

// Draws the encoder, the gates and the head: each parameter from a stream of its own name, so that
// adding a module does not change the others. The layers have drawn theirs already.
void initialise(torch::nn::Module& model, uint64_t seed) {
  torch::NoGradGuard no_grad;
  for (const auto& entry : model.named_modules("", /*include_self=*/false)) {
    auto fill = [&](Tensor& t, const char* suffix, auto next) {
      Random random(seed, RandomSite::initialise, {name_hash(entry.key() + suffix)});
      std::vector<double> values(t.numel());
      for (double& value : values) value = next(random);
      t.copy_(torch::tensor(values, torch::kFloat64).view(t.sizes()));
    };
    if (auto* linear = entry.value()->as<torch::nn::Linear>()) {
      const double bound = 1 / std::sqrt(static_cast<double>(linear->weight.size(1)));
      auto uniform = [bound](Random& r) { return bound * (2 * r.uniform() - 1); };
      fill(linear->weight, ".weight", uniform);
      fill(linear->bias, ".bias", uniform);
    } else if (auto* embedding = entry.value()->as<torch::nn::Embedding>()) {
      fill(embedding->weight, ".weight", [](Random& r) { return r.normal(); });
    }
  }
}

// The kernels trust their caller; LibTorch's embedding would have checked.
void check_tokens(const Tensor& values, int64_t vocabulary) {
  const Tensor tokens = values.contiguous();
  const auto* begin = tokens.data_ptr<int64_t>();
  const auto [low, high] = std::minmax_element(begin, begin + tokens.numel());
  if (*low < 0 || *high >= vocabulary) {
    throw std::invalid_argument(
        fmt::format("model input: token number {} is outside the vocabulary of {}",
                    *low < 0 ? *low : *high, vocabulary));
  }
}

}  // namespace

ParameterGroup group_of(const torch::nn::Module& network, const std::string& name) {
  const size_t dot = name.find('.');
  if (const auto* layer = dynamic_cast<const Layer*>(&network)) return layer->group(name);
  if (dot != std::string::npos) {  // down to the module that owns it
    const auto children = network.named_children();
    if (const auto* child = children.find(name.substr(0, dot))) {
      return dynamic_cast<const NormImpl*>(child->get()) ? ParameterGroup::no_decay
                                                         : group_of(**child, name.substr(dot + 1));
    }
  }
  return name == "bias" ? ParameterGroup::no_decay : ParameterGroup::decay;
}

SequenceModelImpl::SequenceModelImpl(const ModelOptions& options, const DataShape& shape,
                                     uint64_t seed)
    : options_(options), shape_(shape) {
  if (shape.towers == 2 && options.pooling == Pooling::none) {
    throw std::invalid_argument("model: pairs need a pooling; use mean or last");
  }
  if (shape.inputs < 1 || shape.outputs < 1 || options.depth < 1) {
    throw std::invalid_argument(
        fmt::format("model: {} inputs, {} outputs and {} blocks; each must be at least 1",
                    shape.inputs, shape.outputs, options.depth));
  }
  if (shape.input == InputKind::tokens) {
    embedding = register_module("encoder", torch::nn::Embedding(shape.inputs, options.width));
  } else {
    linear = register_module("encoder", torch::nn::Linear(shape.inputs, options.width));
  }
  torch::nn::ModuleList list;
  for (int64_t i = 0; i < options.depth; ++i) {
    blocks.emplace_back(options, i, seed);
    list->push_back(blocks.back());
  }
  register_module("blocks", list);
  if (shape.towers == 2) {
    hidden = register_module("hidden", torch::nn::Linear(4 * options.width, options.width));
  }
  head = register_module("head", torch::nn::Linear(options.width, shape.outputs));
  initialise(*this, seed);
}

void SequenceModelImpl::check_input(const Tensor& values) const {
  const bool tokens = shape_.input == InputKind::tokens;
  if (tokens ? values.dim() != 1 || values.scalar_type() != torch::kInt64
             : values.dim() != 2 || values.size(1) != shape_.inputs) {
    throw std::invalid_argument(fmt::format(
        "model input: expected {}, got a tensor [{}] of {}",
        tokens ? "token numbers [tokens] of int64" : fmt::format("[tokens, {}]", shape_.inputs),
        fmt::join(values.sizes(), ", "), torch::toString(values.scalar_type())));
  }
}

Tensor SequenceModelImpl::encode(const Tensor& values) {
  return shape_.input == InputKind::tokens ? embedding(values) : linear(values);
}

Tensor SequenceModelImpl::pool(const Packed& x) const {
  switch (options_.pooling) {
    case Pooling::last:
      return x.values.index_select(0, x.layout->last());
    case Pooling::none:
      return x.values;
    default: {
      // By splitting: the gradient is one concatenation, and an index_add would run on one thread.
      std::vector<int64_t> lengths;
      const auto& offsets = x.layout->offsets();
      for (size_t i = 0; i + 1 < offsets.size(); ++i)
        lengths.push_back(offsets[i + 1] - offsets[i]);
      std::vector<Tensor> means;
      for (const Tensor& part : x.values.split_with_sizes(lengths)) means.push_back(part.mean(0));
      return torch::stack(means);
    }
  }
}

ModelOutput SequenceModelImpl::forward(const Packed& input, const Pass& pass,
                                       const std::vector<States>& initial) {
  if (!initial.empty() && initial.size() != blocks.size()) {
    throw std::invalid_argument(fmt::format("initial states for {} blocks given to a model of {}",
                                            initial.size(), blocks.size()));
  }
  ModelOutput out;
  out.final.resize(blocks.size());
  if (input.layout->sequences() == 0) {
    out.y = torch::zeros({0, shape_.outputs}, head->weight.options());
    return out;
  }
  check_input(input.values);
  // Channels on the fused kernels have no states.
  const bool mixing = dynamic_cast<const DiagonalLayer*>(blocks.front()->layer.get()) != nullptr;
  const bool fused = uses_fused() && (mixing || (!pass.states && initial.empty()));
  const Tensor pooled = fused ? forward_fused(input, pass, initial, out.final)
                              : forward_reference(input, pass, initial, out.final);
  out.y = tell(pooled);
  return out;
}

Tensor SequenceModelImpl::tell(const Tensor& pooled) {
  if (!hidden) return head(pooled);
  const Tensor pairs = pooled.view({-1, 2, options_.width});
  const Tensor a = pairs.select(1, 0), b = pairs.select(1, 1);
  return head(torch::gelu(hidden(torch::cat({a, b, a - b, a * b}, 1)), "tanh"));
}

bool SequenceModelImpl::uses_kernels() const {
  const Tensor& weight = head->weight;
  return engine.kernels == Kernels::fused && weight.device().is_cpu() &&
         weight.scalar_type() == torch::kFloat32;
}

bool SequenceModelImpl::uses_fused() const {
  return uses_kernels() && blocks.front()->layer->fusible();
}

Tensor SequenceModelImpl::forward_reference(const Packed& input, const Pass& pass,
                                            const std::vector<States>& initial,
                                            std::vector<States>& final) {
  Packed x = input.with(encode(input.values));
  for (size_t i = 0; i < blocks.size(); ++i) {
    const States start = initial.empty() ? States{} : initial[i];
    SystemOutput seen;
    x.values = blocks[i]->forward(x, pass, start, &seen, uses_kernels());
    final[i] = seen.final;
  }
  return pool(x);
}

std::vector<Tensor> SequenceModelImpl::state_norms(const Packed& input) {
  torch::NoGradGuard no_grad;
  check_input(input.values);
  Pass pass;
  pass.watching = true;
  Packed x = input.with(encode(input.values));
  std::vector<Tensor> norms;
  for (auto& block : blocks) {
    SystemOutput seen;
    x.values = block->forward(x, pass, {}, &seen);
    if (!seen.z.defined()) {
      throw std::invalid_argument(fmt::format(
          "norms: {} is run as a convolution and shows no states; rotrnn, lru, s5 and s4d "
          "have some to look at",
          options_.layer));
    }
    norms.push_back(block->layer->state_norms(seen.z));
  }
  return norms;
}

Tensor SequenceModelImpl::forward_fused(const Packed& input, const Pass& pass,
                                        const std::vector<States>& initial,
                                        std::vector<States>& final) {
  if (embedding) check_tokens(input.values, shape_.inputs);
  FusedNetwork network;
  network.input = input;
  network.encoder_weight = embedding ? embedding->weight : linear->weight;
  if (linear) network.encoder_bias = linear->bias;
  network.options = options_;
  network.batch_statistics = is_training();
  network.engine = engine;
  if (network.engine.threads == 0) network.engine.threads = kernels::available_threads();
  std::vector<const DiagonalLayer*> layers;
  for (const Block& block : blocks) {
    const auto* layer = dynamic_cast<const DiagonalLayer*>(block->layer.get());
    if (layer != nullptr) layers.push_back(layer);
  }
  double* seconds = engine.times ? &engine.times->map : nullptr;
  std::vector<System> systems(blocks.size());
  if (!layers.empty()) {
    systems = layers.front()->fused_systems(layers, network.engine.threads, seconds);
  }
  for (size_t i = 0; i < blocks.size(); ++i) {
    std::optional<FusedChannels> channels;
    if (layers.empty()) {
      channels = blocks[i]->layer->fused_channels(*input.layout, seconds);
      systems[i].D = channels->D;
    }
    network.blocks.push_back(
        blocks[i]->fused(systems[i], *input.layout, pass, initial.empty() ? States{} : initial[i]));
    network.blocks.back().channels = std::move(channels);
  }
  FusedOutput out = run_fused(network, pool_);
  for (size_t i = 0; i < out.batch_mean.size(); ++i) {
    blocks[i]->norm->update_running(out.batch_mean[i], out.batch_var[i]);
  }
  final = std::move(out.final);
  return out.pooled;
}

Tensor loss_of(TargetKind kind, const Tensor& y, const Tensor& targets,
               const Tensor& class_weights) {
  return kind == TargetKind::classes ? torch::cross_entropy_loss(y, targets, class_weights)
                                     : torch::mse_loss(y, targets);
}

}  // namespace rotrnn
