#include "rotrnn/training/bench/bench_loader.h"

#include <limits>

#include "rotrnn/base/stopwatch.h"
#include "rotrnn/training/checkpoint/network_checkpoint.h"
#include "rotrnn/training/evaluate/evaluate_network.h"
#include "rotrnn/training/loader.h"
#include "rotrnn/training/optimiser.h"

namespace rotrnn {
namespace {

constexpr int64_t kEndless = std::numeric_limits<int64_t>::max();

double tokens_of(const std::vector<Batch>& parts) {
  double tokens = 0;
  for (const Batch& b : parts) tokens += static_cast<double>(b.length());
  return tokens;
}

// Repeats `step`, which gives the tokens it handled, and returns tokens per second.
template <typename Step>
double rate_of(double seconds, const Step& step) {
  double tokens = 0, spent = 0;
  step();  // touches fresh memory
  while (spent < seconds) {
    const kernels::Stopwatch watch(&spent);
    tokens += step();
  }
  return tokens / spent;
}

}  // namespace

LoaderBench bench_loader(const Config& config, double seconds) {
  const TrainingOptions& t = config.training;
  const int threads = thread_count(t.threads);
  LoaderBench out;
  {
    TaskOptions uncached = config.task;
    uncached.cache = "none";
    const kernels::Stopwatch watch(&out.read_seconds);
    load_task(uncached, threads);
  }
  load_task(config.task, threads);  // fills the cache
  TaskData data;
  {
    const kernels::Stopwatch watch(&out.cached_seconds);
    data = load_task(config.task, threads);
  }
  out.examples = data.train.size();
  out.tokens = data.train.total_length();

  const auto seed = static_cast<uint64_t>(t.seed);
  const DataShape& shape = data.facts.shape;
  const auto loader = [&] {
    return std::make_unique<BatchLoader>(
        data.train, shape, Sampler(data.train.size(), t.batch, seed), 0, kEndless, t.accumulate);
  };
  Network network(config.model, shape, seed);
  network.engine = t.engine();
  network.engine.threads = threads;
  Optimiser optimiser(network.layout());
  FlatArray gradients(network.layout());
  Workspace workspace;
  const LossOptions loss = loss_options(t, shape);
  std::vector<float> dy;
  int64_t step = 0;
  const auto train = [&](const std::vector<Batch>& parts) {
    for (const Batch& b : parts) {
      train_pass(network, workspace, b, {seed, step, b.sequences}, loss, gradients, dy);
    }
    optimiser.step(++step, {t.global_lr * 1e-3, t.recurrent_lr * 1e-3, t.weight_decay}, gradients,
                   network.weights(), threads);
    return tokens_of(parts);
  };

  {
    const auto alone = loader();
    out.loader_rate = rate_of(seconds, [&] { return tokens_of(alone->next()); });
  }
  std::vector<std::vector<Batch>> batches;
  {
    const auto first = loader();
    for (int i = 0; i < 4; ++i) batches.push_back(first->next());
  }
  out.training_rate =
      rate_of(seconds, [&] { return train(batches[static_cast<size_t>(step) % 4]); });
  const auto ahead = loader();
  double spent = 0;
  out.together_rate = rate_of(seconds, [&] {
    const kernels::Stopwatch watch(&spent);
    return train(ahead->next());
  });
  out.waited = ahead->waited() / spent;
  return out;
}

}  // namespace rotrnn
