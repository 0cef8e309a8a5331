#include "rotrnn/training/bench/bench_loader.h"

#include <limits>
#include <memory>

#include "rotrnn/base/stopwatch.h"
#include "rotrnn/training/checkpoint/network_checkpoint.h"
#include "rotrnn/training/evaluate/evaluate_network.h"
#include "rotrnn/training/loader.h"
#include "rotrnn/training/optimiser.h"
#include "rotrnn/training/run_data.h"

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

// The data, read anew and from the cache.
TaskData load_both_ways(const TaskOptions& task, int threads, LoaderBench& out) {
  {
    TaskOptions uncached = task;
    uncached.cache = "none";
    const kernels::Stopwatch watch(&out.read_seconds);
    load_task(uncached, threads);
  }
  load_task(task, threads);  // fills the cache
  const kernels::Stopwatch watch(&out.cached_seconds);
  return load_task(task, threads);
}

// Training steps without anything else; at a small rate, so that weights stay finite.
class Steps {
 public:
  Steps(const Config& config, const TaskData& data, int threads)
      : options_(config.training),
        seed_(static_cast<uint64_t>(options_.seed)),
        network_(with_length(config.model, data), data.facts.shape, seed_),
        optimiser_(network_.layout()),
        gradients_(network_.layout()),
        loss_(loss_options(options_, data.facts.shape)) {
    network_.engine = options_.engine();
    network_.engine.threads = threads;
  }

  int64_t done() const { return done_; }

  /// One step; returns its tokens.
  double step(const std::vector<Batch>& parts) {
    for (const Batch& b : parts) {
      train_pass(network_, workspace_, b, {seed_, done_, b.sequences}, loss_, gradients_, dy_);
    }
    optimiser_.step(
        ++done_, {options_.global_lr * 1e-3, options_.recurrent_lr * 1e-3, options_.weight_decay},
        gradients_, network_.weights(), network_.engine.threads);
    return tokens_of(parts);
  }

 private:
  const TrainingOptions& options_;
  uint64_t seed_;
  Network network_;
  Optimiser optimiser_;
  FlatArray gradients_;
  Workspace workspace_;
  LossOptions loss_;
  std::vector<float> dy_;
  int64_t done_ = 0;
};

}  // namespace

LoaderBench bench_loader(const Config& config, double seconds) {
  const int threads = thread_count(config.training.threads);
  LoaderBench out;
  const TaskData data = load_both_ways(config.task, threads, out);
  out.examples = data.train.size();
  out.tokens = data.train.total_length();
  const auto loader = [&] {
    return std::make_unique<BatchLoader>(data.train, data.facts.shape, make_sampler(config, data),
                                         0, kEndless, config.training.accumulate);
  };
  {
    const auto alone = loader();
    out.loader_rate = rate_of(seconds, [&] { return tokens_of(alone->next()); });
  }
  Steps training(config, data, threads);
  std::vector<std::vector<Batch>> batches;
  {
    const auto first = loader();
    for (int i = 0; i < 4; ++i) batches.push_back(first->next());
  }
  out.training_rate = rate_of(
      seconds, [&] { return training.step(batches[static_cast<size_t>(training.done()) % 4]); });
  const auto ahead = loader();
  double spent = 0;
  out.together_rate = rate_of(seconds, [&] {
    const kernels::Stopwatch watch(&spent);
    return training.step(ahead->next());
  });
  out.waited = ahead->waited() / spent;
  return out;
}

}  // namespace rotrnn
