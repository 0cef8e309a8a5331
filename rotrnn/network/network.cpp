#include "rotrnn/network/network.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <stdexcept>

#include "rotrnn/base/stopwatch.h"
#include "rotrnn/base/threads.h"
#include "rotrnn/layers/layer_table.h"
#include "rotrnn/network/features/feature_pass.h"
#include "rotrnn/network/frontend.h"
#include "rotrnn/network/fused/fused_pass.h"
#include "rotrnn/network/reference/feature_twin.h"
#include "rotrnn/network/reference/reference_pass.h"
#include "rotrnn/network/tensors.h"

namespace rotrnn {
namespace {

double* map_seconds(const EngineOptions& engine) {
  return engine.times ? &engine.times->map : nullptr;
}

int threads_of(const EngineOptions& engine) {
  return engine.threads > 0 ? engine.threads : kernels::available_threads();
}

void check_tokens(std::span<const int64_t> tokens, int64_t vocabulary) {
  for (const int64_t token : tokens) {
    if (token >= 0 && token < vocabulary) continue;
    throw std::invalid_argument(fmt::format(
        "network input: token number {} is outside the vocabulary of {}", token, vocabulary));
  }
}

std::vector<double> in_double(const float* values, size_t count) {
  return values == nullptr ? std::vector<double>() : std::vector<double>(values, values + count);
}

template <class T>
std::vector<ReferencePass::States> in_double(const std::vector<BlockStates<T>>& states,
                                             size_t count) {
  std::vector<ReferencePass::States> out;
  for (const auto& s : states)
    out.push_back({in_double(s.forward, count), in_double(s.reverse, count)});
  return out;
}

void copy_to(const std::vector<double>& from, float* to) {
  if (to == nullptr) return;
  std::transform(from.begin(), from.end(), to, [](double x) { return static_cast<float>(x); });
}

void copy_to(const std::vector<ReferencePass::States>& from,
             const std::vector<BlockStates<float>>& to) {
  for (size_t l = 0; l < to.size(); ++l) {
    copy_to(from[l].forward, to[l].forward);
    copy_to(from[l].reverse, to[l].reverse);
  }
}

}  // namespace

struct Workspace::Impl {
  // The layers of these weights; found once.
  NetworkLayers& layers_of(const ModelOptions& options, Weights& weights) {
    if (!layers || layers->weights != weights.parameters().data()) layers.emplace(options, weights);
    return *layers;
  }

  Frontend frontend;  // of a fitted network
  FeaturePass features;
  std::optional<NetworkLayers> layers;
  LayerMaps maps;
  FusedPass fused;
  ReferencePass reference;
  std::vector<float> y;  // of the reference pass
  size_t sequences = 0;
  bool pending = false;  // a reference pass, or one without sequences, can run backward
};

Workspace::Workspace() : impl(std::make_unique<Impl>()) {}
Workspace::~Workspace() = default;

size_t output_rows(const ModelOptions& options, const DataShape& shape, const PackedInput& batch) {
  if (options.pooling == Pooling::none) return batch.rows();
  return batch.sequences() / static_cast<size_t>(shape.towers);
}

Network::Network(const ModelOptions& options, const DataShape& shape, uint64_t seed)
    : options_(options), shape_(shape), weights_(network_tensors(options, shape)) {
  options_.frontend = frontend_of(options, shape);
  draw_network(options_, seed, weights_);
}

void Network::check(const NetworkInput& input) const {
  const PackedInput& batch = input.batch;
  check_offsets(batch.offsets);
  const size_t rows = batch.rows();
  if (batch.sequences() % static_cast<size_t>(shape_.towers) != 0) {
    throw std::invalid_argument(
        fmt::format("network input: {} sequences cannot be pairs; there must be an even number",
                    batch.sequences()));
  }
  if (shape_.input == InputKind::tokens) {
    if (batch.tokens.size() != rows) {
      throw std::invalid_argument(fmt::format("network input: {} token numbers, the offsets say {}",
                                              batch.tokens.size(), rows));
    }
    check_tokens(batch.tokens, shape_.inputs);
  } else if (batch.values.size() != rows * static_cast<size_t>(shape_.inputs)) {
    throw std::invalid_argument(
        fmt::format("network input: {} values, the offsets say {} rows of {} channels",
                    batch.values.size(), rows, shape_.inputs));
  }
  if (input.mode == Mode::train && options_.dropout > 0 &&
      input.dropout.sequences.size() != batch.sequences()) {
    throw std::invalid_argument(fmt::format("dropout: {} sequence numbers for a batch of {}",
                                            input.dropout.sequences.size(), batch.sequences()));
  }
  for (const size_t given : {input.initial.size(), input.final.size()}) {
    if (given == 0 || given == static_cast<size_t>(options_.depth)) continue;
    throw std::invalid_argument(
        fmt::format("states of {} blocks for a network of {}", given, options_.depth));
  }
  for (size_t l = 0; l < std::max(input.initial.size(), input.final.size()); ++l) {
    check_states(options_, engine,
                 input.initial.empty() ? BlockStates<const float>{} : input.initial[l],
                 input.final.empty() ? BlockStates<float>{} : input.final[l]);
  }
}

size_t Network::state_size() const {
  if (options_.body == Body::features) return 0;
  return rotrnn::state_size(options_);
}

std::span<const float> Network::forward_features(const NetworkInput& input, Workspace& workspace) {
  Workspace::Impl& w = *workspace.impl;
  if (input.mode != Mode::evaluate || input.backward) {
    throw std::invalid_argument(
        "model.body = \"features\" is fitted by rotrnn fit and has no gradient; train with "
        "model.body = \"blocks\"");
  }
  if (engine.kernels == Kernels::fused) {
    const PackedInput tokens =
        w.frontend.forward({options_.frontend, static_cast<size_t>(shape_.inputs), weights_,
                            input.batch, false, false, threads_of(engine)});
    return w.features.forward({options_, weights_, tokens,
                               frontend_channels(options_.frontend, shape_.inputs), shape_.outputs,
                               threads_of(engine)});
  }
  const auto y = feature_twin(options_, shape_, weights_, input.batch);
  w.y.assign(y.begin(), y.end());
  return w.y;
}

std::span<const float> Network::forward(const NetworkInput& input, Workspace& workspace) {
  Workspace::Impl& w = *workspace.impl;
  check(input);
  w.pending = false;
  w.sequences = input.batch.sequences();
  if (w.sequences == 0) {
    w.pending = input.backward;
    return {};
  }
  if (options_.body == Body::features) return forward_features(input, workspace);
  {
    const kernels::Stopwatch watch(map_seconds(engine));
    w.maps.forward(options_, w.layers_of(options_, weights_).values,
                   longest_tokens(options_.frontend, input.batch.offsets), threads_of(engine),
                   input.same_weights);
  }
  if (engine.kernels == Kernels::fused) {
    return w.fused.forward({options_, shape_, engine, weights_, w.maps}, input);
  }
  const size_t states = w.sequences * state_size();
  const auto& y = w.reference.forward(
      options_, shape_, engine, weights_, w.maps,
      {input.batch, input.mode, input.dropout, in_double(input.initial, states)});
  copy_to(w.reference.final(), input.final);
  for (size_t l = 0; l < w.reference.running().size() && input.mode == Mode::train; ++l) {
    const auto& [mean, variance] = w.reference.running()[l];
    copy_to(mean, weights_.find(fmt::format("blocks.{}.norm.running_mean", l)).data());
    copy_to(variance, weights_.find(fmt::format("blocks.{}.norm.running_var", l)).data());
  }
  w.pending = input.backward;
  w.y.assign(y.begin(), y.end());
  return w.y;
}

void Network::backward(const NetworkOutputGradient& gradient, Workspace& workspace,
                       FlatArray& parameters, const NetworkInputGradient& input) {
  Workspace::Impl& w = *workspace.impl;
  const auto take_pending = [&] {
    if (!w.pending) {
      throw std::logic_error("backward: there is no forward pass that has kept what it needs");
    }
    w.pending = false;
  };
  if (w.sequences == 0) {
    take_pending();
    std::fill(parameters.all().begin(), parameters.all().end(), 0.0f);
    return;
  }
  if (engine.kernels == Kernels::fused) {
    w.fused.backward({options_, shape_, engine, weights_, w.maps}, gradient, parameters, input);
    const kernels::Stopwatch watch(map_seconds(engine));
    NetworkLayers& layers = w.layers_of(options_, weights_);
    w.maps.backward(options_, layers.values, threads_of(engine), layers.gradients);
    return layers.write_gradients(parameters);
  }
  take_pending();
  const size_t states = w.sequences * state_size();
  std::vector<double> dy =
      gradient.y == nullptr ? std::vector<double>(w.y.size()) : in_double(gradient.y, w.y.size());
  const auto g = w.reference.backward(options_, w.layers_of(options_, weights_), weights_, w.maps,
                                      dy, in_double(gradient.final, states));
  copy_to(g.parameters, parameters.data());
  copy_to(g.values, input.values);
  copy_to(g.initial, input.initial);
}

Network::StateNorms Network::state_norms(const PackedInput& batch, Workspace& workspace) {
  if (options_.body == Body::features) {
    throw std::invalid_argument(
        "norms: a fitted network has no hidden states of blocks to look at");
  }
  if (state_size() == 0) {
    throw std::invalid_argument(
        fmt::format("norms: {} is run as a convolution and shows no states; rotrnn, lru, s5 and "
                    "s4d have some to look at",
                    options_.layer));
  }
  NetworkInput input;
  input.batch = batch;
  check(input);
  Workspace::Impl& w = *workspace.impl;
  w.pending = false;
  StateNorms out;
  out.groups = static_cast<size_t>(layer_kind(options_.layer).states(options_).groups);
  w.maps.forward(options_, w.layers_of(options_, weights_).values,
                 longest_tokens(options_.frontend, batch.offsets), threads_of(engine), false);
  EngineOptions alone = engine;  // looking at a batch must not wait for other processes
  alone.reduce = {};
  w.fused.norms({options_, shape_, alone, weights_, w.maps}, batch, out.blocks);
  return out;
}

}  // namespace rotrnn
