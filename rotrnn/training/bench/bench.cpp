#include "rotrnn/training/bench/bench.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>

#include "rotrnn/base/median.h"
#include "rotrnn/base/stopwatch.h"
#include "rotrnn/base/threads.h"
#include "rotrnn/kernels/simd/simd.h"
#include "rotrnn/training/batch.h"
#include "rotrnn/training/bench/inventory.h"
#include "rotrnn/training/checkpoint/network_checkpoint.h"
#include "rotrnn/training/evaluate/evaluate_network.h"

namespace rotrnn {
namespace {

double peak_memory_mb() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

void name_stages(StepBench& result, const EngineTimes& times, double optimiser, double steps) {
  static constexpr const char* kNames[] = {"norm", "W", "scan", "V", "activation", "GLU"};
  const double share = steps * result.threads;
  for (size_t i = 0; i < std::size(kNames); ++i) {
    result.stages.emplace_back(kNames[i], times.stages.forward[i] / share);
    result.stages.emplace_back(std::string(kNames[i]) + "_backward",
                               times.stages.backward[i] / share);
  }
  result.stages.emplace_back("blocks", times.blocks / steps);
  result.stages.emplace_back("map", times.map / steps);
  result.stages.emplace_back("optimiser", optimiser / steps);
}

}  // namespace

double measure_peak_gflops(int threads) {
  double best = 0;
  for (int repeat = 0; repeat < 5; ++repeat) {
    std::vector<double> rates(static_cast<size_t>(threads));
    kernels::parallel_for(threads, [&](int t) {
      double seconds = 0, operations = 0;
      {
        const kernels::Stopwatch watch(&seconds);
        operations = kernels::table().fma_loop(5'000'000);
      }
      rates[static_cast<size_t>(t)] = operations / seconds * 1e-9;
    });
    double total = 0;
    for (double rate : rates) total += rate;
    best = std::max(best, total);
  }
  return best;
}

StepBench bench_step(const StepBenchOptions& options) {
  const TrainingOptions& t = options.config.training;
  StepBench result;
  result.threads = thread_count(t.threads);
  const double peak_before = measure_peak_gflops(result.threads);

  const DataShape shape = describe_task(options.config.task).shape;
  Network network(options.config.model, shape, static_cast<uint64_t>(t.seed));
  EngineTimes times;
  network.engine = t.engine();
  network.engine.threads = result.threads;
  result.fused = t.kernels == Kernels::fused;
  Optimiser optimiser(network.layout());
  FlatArray gradients(network.layout());
  Workspace workspace;
  const Batch noise = make_noise(shape, options.lengths);
  const LossOptions loss = loss_options(t, shape);
  std::vector<float> dy;
  const double memory_before = peak_memory_mb();

  std::vector<double> seconds;
  double optimiser_seconds = 0;
  constexpr int kWarmUp = 2;  // the first step touches fresh memory
  for (int step = 0; step < kWarmUp + options.repeats; ++step) {
    if (step == kWarmUp) {
      network.engine.times = &times;
      optimiser_seconds = 0;
    }
    double whole = 0;
    {
      const kernels::Stopwatch watch(&whole);
      train_pass(network, workspace, noise, {0, step, noise.sequences}, loss, gradients, dy);
      const kernels::Stopwatch optimiser_watch(&optimiser_seconds);
      norm_of(gradients);
      optimiser.step(step + 1, {t.global_lr * 1e-3, t.recurrent_lr * 1e-3, t.weight_decay},
                     gradients, network.weights(), result.threads);
    }
    if (step >= kWarmUp) seconds.push_back(whole);
  }

  const FrontendOptions& frontend = network.options().frontend;
  double tokens = 0;  // that the blocks see
  for (const int64_t length : options.lengths) {
    tokens += static_cast<double>(frontend_tokens(frontend, length));
  }
  result.seconds_per_step = median(seconds);
  result.fastest_step = *std::min_element(seconds.begin(), seconds.end());
  result.tokens_per_second = tokens / result.seconds_per_step;
  result.useful_gflops =
      result.tokens_per_second * useful_flops_per_token(options.config.model) * 1e-9;
  result.peak_memory_mb = peak_memory_mb() - memory_before;
  result.peak_gflops = std::max(peak_before, measure_peak_gflops(result.threads));
  result.fraction_of_peak = result.useful_gflops / result.peak_gflops;
  if (result.fused) {
    double total = 0;
    for (double s : seconds) total += s;
    result.outside_blocks = 1 - times.blocks / total;
    name_stages(result, times, optimiser_seconds, static_cast<double>(options.repeats));
  }
  return result;
}

}  // namespace rotrnn
