#include "rotrnn/network/single_layer.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "rotrnn/base/threads.h"
#include "rotrnn/layers/layer_table.h"
#include "rotrnn/network/fused/channel_runner.h"
#include "rotrnn/network/fused/fused_system.h"
#include "rotrnn/network/layer_maps.h"
#include "rotrnn/network/reference/layer_twin.h"
#include "rotrnn/network/tensors.h"

namespace rotrnn {
namespace {

namespace twins = kernels::reference;

kernels::BlockConfig bare_layer(const Description<float>& layer) {
  if (const auto* channel = std::get_if<Channel<float>>(&layer)) {
    return kernels::bare_layer(static_cast<size_t>(channel->width), 0, false);
  }
  const auto& s = std::get<Diagonal<float>>(layer);
  return kernels::bare_layer(static_cast<size_t>(s.width), static_cast<size_t>(s.states),
                             s.bidirectional());
}

std::vector<double> doubles(const float* values, size_t count) {
  return values == nullptr ? std::vector<double>() : std::vector<double>(values, values + count);
}

void round_to(const std::vector<double>& from, float* to) {
  if (to != nullptr) std::copy(from.begin(), from.end(), to);
}

}  // namespace

struct LayerWorkspace::Impl {
  kernels::PackedSequences sequences() const { return {offsets.data(), offsets.size() - 1}; }

  kernels::BlockParameters parameters() const {
    kernels::BlockParameters p;
    p.layer = fused_layer(maps.rounded(0));
    return p;
  }

  kernels::BlockInput block_input() const {
    kernels::BlockInput in;
    in.x = input.u;
    in.initial = input.initial.forward;
    in.initial_reverse = input.initial.reverse;
    return in;
  }

  // y = layer + D⊙u.
  void forward_channels(const Channel<float>& layer, const LayerOutput& output) {
    const ChannelBatch batch{sequences(), threads};
    kept = nullptr;
    const size_t size = channels.kept_size(layer, batch);
    // With states it is run as a recurrence, which leaves nothing in `kept`.
    const bool states = input.initial.forward != nullptr || output.final.forward != nullptr;
    if (config.keep == kernels::Keep::all && size > 0 && !states) kept = saved.take<float>(size);
    channels.forward(layer, batch, {input.u, input.initial.forward},
                     {output.y, output.final.forward, kept});
    const size_t D = config.D, count = batch.sequences.tokens() * D;
    for (size_t i = 0; i < count; ++i) output.y[i] += layer.D[i % D] * input.u[i];
  }

  void backward_channels(const Channel<float>& layer, const LayerOutputGradient& gradient,
                         const LayerInputGradient& out) {
    const ChannelBatch batch{sequences(), threads};
    kernels::BlockGradients unused;
    set_gradient(maps.rounded(0), maps.gradient(0), unused);
    auto& g = std::get<Channel<float>>(maps.gradient(0));
    const size_t D = config.D, count = batch.sequences.tokens() * D;
    std::vector<double> sums(D);
    for (size_t i = 0; i < count; ++i) {
      sums[i % D] += static_cast<double>(gradient.y[i]) * static_cast<double>(input.u[i]);
    }
    std::copy(sums.begin(), sums.end(), g.D.begin());
    channels.backward(layer, batch, {input.u, input.initial.forward},
                      {gradient.y, gradient.final.forward, kept}, {out.u, &g, out.initial.forward});
    for (size_t i = 0; i < count; ++i) out.u[i] += layer.D[i % D] * gradient.y[i];
  }

  // By the plain twins, in double. --------------------------------------------------------------

  bool diagonal() const { return std::holds_alternative<Diagonal<double>>(maps.exact(0)); }

  void forward_twin(const LayerOutput& output) {
    const size_t n = sequences().tokens(), states = sequences().count * size_of_states;
    const TwinStates initial{doubles(input.initial.forward, states),
                             doubles(input.initial.reverse, states)};
    values = {};
    values.x = doubles(input.u, n * config.D);
    set_layer(maps.exact(0), values);
    TwinStates final;
    twins::LayerTwin<double> twin;
    if (diagonal()) {
      values.initial = initial.forward, values.initial_reverse = initial.reverse;
    } else {
      twin = channel_twin(std::get<Channel<double>>(maps.exact(0)), sequences(),
                          {.initial = initial, .final = &final});
    }
    trace = twins::block_forward<double>(config, sequences(), values, {}, {},
                                         diagonal() ? nullptr : &twin);
    if (diagonal()) final = {trace.final_state[0], trace.final_state[1]};
    round_to(trace.out, output.y);
    round_to(final.forward, output.final.forward);
    round_to(final.reverse, output.final.reverse);
  }

  Description<double> backward_twin(const LayerOutputGradient& gradient,
                                    const LayerInputGradient& out) {
    const size_t n = sequences().tokens(), states = sequences().count * size_of_states;
    const TwinStates dfinal{doubles(gradient.final.forward, states),
                            doubles(gradient.final.reverse, states)};
    Description<double> description;
    TwinStates dinitial;
    twins::LayerTwin<double> twin;
    if (!diagonal()) {
      const TwinStates initial{doubles(input.initial.forward, states),
                               doubles(input.initial.reverse, states)};
      twin = channel_twin(
          std::get<Channel<double>>(maps.exact(0)), sequences(),
          {.initial = initial, .dfinal = dfinal, .gradient = &description, .dinitial = &dinitial});
    }
    const auto g = twins::block_backward<double>(config, sequences(), values, {}, {}, trace,
                                                 doubles(gradient.y, n * config.D), dfinal.forward,
                                                 dfinal.reverse, diagonal() ? nullptr : &twin);
    if (diagonal()) {
      description = layer_of(g);
      dinitial = {g.initial, g.initial_reverse};
    } else {
      std::get<Channel<double>>(description).D = g.D;
    }
    round_to(g.x, out.u);
    round_to(dinitial.forward, out.initial.forward);
    round_to(dinitial.reverse, out.initial.reverse);
    return description;
  }

  LayerInput input;
  std::vector<int64_t> offsets;
  size_t size_of_states = 0;
  int threads = 1;
  LayerMaps maps;
  kernels::BlockConfig config;
  ChannelRunner channels;
  float* kept = nullptr;
  kernels::Arena saved, scratch;
  kernels::BlockSaved block;
  twins::BlockValues<double> values;
  twins::BlockTrace<double> trace;
  bool pending = false;
};

LayerWorkspace::LayerWorkspace() : impl(std::make_unique<Impl>()) {}
LayerWorkspace::~LayerWorkspace() = default;
LayerWorkspace::LayerWorkspace(LayerWorkspace&&) noexcept = default;
LayerWorkspace& LayerWorkspace::operator=(LayerWorkspace&&) noexcept = default;

SingleLayer::SingleLayer(const LayerOptions& options, uint64_t seed, uint64_t stream)
    : options_(options),
      weights_((layer_kind(options.layer).check(options, true),
                layer_kind(options.layer).tensors(options))) {
  layer_kind(options.layer).draw(options, seed, stream, layer_values(options_, "", weights_));
}

size_t SingleLayer::state_size() const {
  return rotrnn::state_size(options_);
}

void SingleLayer::forward(const LayerInput& input, const LayerOutput& output,
                          LayerWorkspace& workspace) {
  check_offsets(input.offsets);
  check_states(options_, engine, input.initial, output.final);
  LayerWorkspace::Impl& i = *workspace.impl;
  i.offsets.assign(input.offsets.begin(), input.offsets.end());
  i.input = input;
  i.pending = input.backward;
  i.size_of_states = state_size();
  i.threads = engine.threads > 0 ? engine.threads : kernels::available_threads();
  i.maps.forward(options_, {layer_values(options_, "", weights_)}, longest_of(input.offsets),
                 i.threads, false);
  kernels::BlockConfig& c = i.config = bare_layer(i.maps.rounded(0));
  c.threads = i.threads;
  c.keep = !input.backward                       ? kernels::Keep::nothing
           : engine.memory == MemoryMode::normal ? kernels::Keep::all
                                                 : kernels::Keep::boundaries;
  if (engine.kernels == Kernels::reference) return i.forward_twin(output);
  i.saved.reset();
  if (const auto* channel = std::get_if<Channel<float>>(&i.maps.rounded(0))) {
    return i.forward_channels(*channel, output);
  }
  i.block = kernels::block_save(c, i.sequences(), i.saved);
  kernels::block_forward(c, i.sequences(), i.parameters(), i.block_input(),
                         {output.y, output.final.forward, output.final.reverse, nullptr}, i.block,
                         i.scratch);
}

void SingleLayer::backward(const LayerOutputGradient& gradient, LayerWorkspace& workspace,
                           FlatArray& parameters, const LayerInputGradient& out) {
  LayerWorkspace::Impl& i = *workspace.impl;
  if (!i.pending) {
    throw std::logic_error("backward: there is no forward pass that has kept what it needs");
  }
  i.pending = false;
  std::vector<Description<double>> exact;
  if (engine.kernels == Kernels::reference) {
    exact.push_back(i.backward_twin(gradient, out));
  } else if (const auto* channel = std::get_if<Channel<float>>(&i.maps.rounded(0))) {
    i.backward_channels(*channel, gradient, out);
  } else {
    kernels::BlockGradients g;
    set_gradient(i.maps.rounded(0), i.maps.gradient(0), g);
    g.x = out.u;
    g.initial = out.initial.forward;
    g.initial_reverse = out.initial.reverse;
    kernels::OutputGradient from;
    from.value = gradient.y;
    from.final = gradient.final.forward;
    from.final_reverse = gradient.final.reverse;
    kernels::block_backward(i.config, i.sequences(), i.parameters(), i.block_input(), i.block, from,
                            g, i.scratch);
  }
  std::vector<double> sums(layout().size);
  std::vector<Views<double>> views(1);
  for (const auto& p : layout().parameters) {
    views[0].add(p.name, std::span(sums).subspan(p.offset, p.count));
  }
  i.maps.backward(options_, {layer_values(options_, "", weights_)}, i.threads, views,
                  exact.empty() ? nullptr : &exact);
  std::copy(sums.begin(), sums.end(), parameters.data());
}

}  // namespace rotrnn
