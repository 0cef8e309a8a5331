#include "rotrnn/training/inventory.h"

#include <algorithm>
#include <chrono>

#include "rotrnn/layers/registry.h"
#include "rotrnn/training/network.h"

namespace rotrnn {
namespace {

const char* group_name(ParameterGroup group) {
  switch (group) {
    case ParameterGroup::recurrent:
      return "recurrent";
    case ParameterGroup::recurrent_decay:
      return "recurrent, decay";
    case ParameterGroup::no_decay:
      return "global, no decay";
    default:
      return "global";
  }
}

// Numbers per token that a training step holds at its peak.
double numbers_per_token(const ModelOptions& m, const TrainingOptions& t) {
  const double D = static_cast<double>(m.width), N = static_cast<double>(m.state);
  const double depth = static_cast<double>(m.depth), states = (m.bidirectional ? 2 : 1) * N;
  const double gates = m.activation == Activation::gelu ? 0 : has_value(m.activation) ? 2 : 1;
  if (t.kernels == Kernels::fused) {
    // A block's input, and unless they are computed again its output before the activation, its
    // gates and its states; the last output and two gradients. Channels keep no states, but see
    // whole batches.
    const bool channels = has_channels(m);
    const double all = (2 + gates) * D + (channels ? 0 : states);
    return depth * (t.memory == MemoryMode::low ? D : all) + (channels ? 6 : 3) * D;
  }
  // Input, normalised input, the layer's output, h, the gates, two masks, the states; on top of
  // that the backward pass of one scan holds about six copies of its states.
  const double kept = (3 + (gates > 0 ? 1 + gates : 0) + (m.dropout > 0 ? 4 : 0)) * D + states;
  return depth * kept + 6 * (N + D);
}

double measure_rate(const Config& config, const TaskFacts& facts) {
  use_threads(config.training.threads);
  const int64_t length = std::clamp<int64_t>(facts.typical_length / facts.shape.towers, 1, 4096);
  const int64_t batch = std::max<int64_t>(1, 4096 / length) * facts.shape.towers;
  SequenceModel model(config.model, facts.shape, 0);
  model->engine = config.training.engine();
  AdamW optimiser(*model);
  const bool tokens = facts.shape.input == InputKind::tokens;
  std::vector<int64_t> offsets{0};
  Pass pass;
  for (int64_t i = 0; i < batch; ++i) {
    offsets.push_back(offsets.back() + length);
    pass.sequences.push_back(i);
  }
  const Packed input(tokens ? torch::randint(facts.shape.inputs, {batch * length}, torch::kInt64)
                            : torch::randn({batch * length, facts.shape.inputs}),
                     offsets);
  double best = 0;
  for (int repeat = 0; repeat < 6; ++repeat) {  // the first ones touch fresh memory
    const auto begin = std::chrono::steady_clock::now();
    optimiser.zero_grad();
    model->forward(input, pass).y.sum().backward();
    optimiser.step(repeat + 1, 0, 0, 0);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    best = std::max(best, static_cast<double>(batch * length) / seconds.count());
  }
  return best;
}

}  // namespace

std::vector<ParameterInfo> inventory(const ModelOptions& options, const DataShape& shape) {
  std::vector<ParameterInfo> out;
  const SequenceModel model(options, shape, 0);
  for (const auto& entry : model->named_parameters()) {
    out.push_back({entry.key(), entry.value().sizes().vec(), entry.value().numel(),
                   group_name(group_of(*model, entry.key()))});
  }
  return out;
}

int64_t parameter_count(const ModelOptions& options, const DataShape& shape) {
  ModelOptions one = options;
  one.depth = 1;
  int64_t count = 0;
  for (const ParameterInfo& p : inventory(one, shape)) {
    count += p.name.starts_with("blocks.") ? options.depth * p.count : p.count;
  }
  return count;
}

double useful_flops_per_token(const ModelOptions& m) {
  const double D = static_cast<double>(m.width), N = static_cast<double>(m.state);
  // A channel's state does 6 multiply-adds for a complex number, half of N of them.
  const bool channels = has_channels(m);
  const double layer = (channels ? (m.bidirectional ? 12 : 6) : m.bidirectional ? 6 : 4) * D * N;
  const double gates = m.activation == Activation::gelu ? 0 : has_value(m.activation) ? 4 : 2;
  return 3 * static_cast<double>(m.depth) * (layer + gates * D * D);
}

Estimate estimate(const Config& config, const TaskFacts& facts, bool measure) {
  const TrainingOptions& t = config.training;
  Estimate out;
  out.tokens_per_step = static_cast<double>(t.batch * facts.typical_length);
  out.flops_per_token = useful_flops_per_token(config.model);
  const auto parameters = static_cast<double>(parameter_count(config.model, facts.shape));
  const double part = out.tokens_per_step / static_cast<double>(t.accumulate);
  out.memory_bytes = 4 * (4 * parameters + part * numbers_per_token(config.model, t));
  if (measure) {
    out.tokens_per_second = measure_rate(config, facts);
    out.hours = static_cast<double>(t.steps) * out.tokens_per_step / out.tokens_per_second / 3600;
  }
  return out;
}

}  // namespace rotrnn
