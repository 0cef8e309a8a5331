#include "rotrnn/training/bench/inventory.h"

#include <algorithm>
#include <chrono>

#include "rotrnn/layers/registry.h"
#include "rotrnn/network/frontend.h"
#include "rotrnn/network/tensors.h"
#include "rotrnn/training/batch.h"
#include "rotrnn/training/checkpoint/network_checkpoint.h"
#include "rotrnn/training/evaluate/evaluate_network.h"

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
    case ParameterGroup::decay:
      break;
  }
  return "global";
}

// Numbers per token that a training step holds at its peak.
double numbers_per_token(const ModelOptions& m, const TrainingOptions& t) {
  const double D = static_cast<double>(m.width), N = static_cast<double>(m.state);
  const double depth = static_cast<double>(m.depth), states = (m.bidirectional ? 2 : 1) * N;
  const double gates = has_value(m.activation) ? 2 : has_gate(m.activation) ? 1 : 0;
  if (t.kernels == Kernels::fused) {
    // A block's input, and unless they are computed again its output before the activation, its
    // gates and its states; the last output and two gradients. Channels keep no states, but see
    // whole batches.
    const bool channels = has_channels(m);
    const double all = (2 + gates) * D + (channels ? 0 : states);
    return depth * (t.memory == MemoryMode::low ? D : all) + (channels ? 6 : 3) * D;
  }
  // In double: input, normalised input and its copy, the layer's output, h, the gates, the states
  // and what drove them; on top of that the gradients of one block.
  const double kept = (6 + 2 * gates) * D + 2 * states;
  return 2 * (depth * kept + 6 * (N + D));
}

double measure_rate(const Config& config, const TaskFacts& facts) {
  constexpr int64_t kTokens = 4096;
  const FrontendOptions frontend = frontend_of(config.model, facts.shape);
  const int64_t length = std::clamp<int64_t>(facts.typical_length / facts.shape.towers, 1,
                                             frontend_samples(frontend, kTokens - 1));
  const int64_t tokens = frontend_tokens(frontend, length);
  const int64_t batch = std::max<int64_t>(1, kTokens / tokens) * facts.shape.towers;
  Network network(config.model, facts.shape, 0);
  network.engine = config.training.engine();
  network.engine.threads = thread_count(config.training.threads);
  Optimiser optimiser(network.layout());
  FlatArray gradients(network.layout());
  Workspace workspace;
  const Batch noise =
      make_noise(facts.shape, std::vector<int64_t>(static_cast<size_t>(batch), length));
  const LossOptions loss = loss_options(config.training, facts.shape);
  std::vector<float> dy;
  double best = 0;
  for (int repeat = 0; repeat < 6; ++repeat) {  // the first ones touch fresh memory
    const auto begin = std::chrono::steady_clock::now();
    train_pass(network, workspace, noise, {0, repeat, noise.sequences}, loss, gradients, dy);
    optimiser.step(repeat + 1, {}, gradients, network.weights(), network.engine.threads);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    best = std::max(best, static_cast<double>(batch * tokens) / seconds.count());
  }
  return best;
}

}  // namespace

std::vector<ParameterInfo> inventory(const ModelOptions& options, const DataShape& shape) {
  std::vector<ParameterInfo> out;
  for (const ParameterSpec& p : network_tensors(options, shape).parameters) {
    out.push_back({p.name, p.shape, static_cast<int64_t>(count_of(p.shape)), group_name(p.group)});
  }
  return out;
}

int64_t parameter_count(const ModelOptions& options, const DataShape& shape) {
  ModelOptions one = options;
  if (options.body == Body::blocks) one.depth = 1;
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
  const double gates = has_value(m.activation) ? 4 : has_gate(m.activation) ? 2 : 0;
  return 3 * static_cast<double>(m.depth) * (layer + gates * D * D);
}

Estimate estimate(const Config& config, const TaskFacts& facts, bool measure) {
  const TrainingOptions& t = config.training;
  Estimate out;
  const FrontendOptions frontend = frontend_of(config.model, facts.shape);
  const int64_t towers = facts.shape.towers;
  const int64_t length = std::max<int64_t>(1, facts.typical_length / towers);
  out.tokens_per_step =
      static_cast<double>(t.batch * (frontend.used() ? towers * frontend_tokens(frontend, length)
                                                     : facts.typical_length));
  out.flops_per_token = useful_flops_per_token(config.model);
  const auto parameters = static_cast<double>(parameter_count(config.model, facts.shape));
  const double part = out.tokens_per_step / static_cast<double>(t.accumulate);
  double numbers = part * numbers_per_token(config.model, t);
  if (frontend.used()) {  // samples, tokens, and rotations at the end of each
    const auto channels = static_cast<double>(frontend_channels(frontend, facts.shape.inputs));
    numbers += part * 3 * channels +
               static_cast<double>(t.batch / t.accumulate * length * towers * facts.shape.inputs);
  }
  out.memory_bytes = 4 * (4 * parameters + numbers);
  if (measure) {
    out.tokens_per_second = measure_rate(config, facts);
    out.hours = static_cast<double>(t.steps) * out.tokens_per_step / out.tokens_per_second / 3600;
  }
  return out;
}

}  // namespace rotrnn
