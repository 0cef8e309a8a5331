#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "rotrnn/training/config/config.h"

namespace rotrnn {

/// What to time: training steps of a config's network on noise.
struct StepBenchOptions {
  Config config;
  std::vector<int64_t> lengths;  // of the sequences of a batch
  int repeats = 7;
};

/// What was measured; times are medians over the repeats.
struct StepBench {
  double seconds_per_step = 0, fastest_step = 0;
  double tokens_per_second = 0;
  double useful_gflops = 0;
  double peak_gflops = 0;  // register-only multiply-adds on all threads, before and after
  double fraction_of_peak = 0;
  double peak_memory_mb = 0;  // increase over the peak before the first step
  double outside_blocks = 0;  // share of a step that is not spent in the blocks; fused only
  int threads = 0;
  bool fused = false;
  // Seconds of one step by stage; inside the blocks divided by the threads.
  std::vector<std::pair<std::string, double>> stages;
};

/// Times whole training steps: forward, loss, backward, optimiser.
StepBench bench_step(const StepBenchOptions& options);

/// Floating-point operations per second of multiply-adds in registers, on all threads, in 1e9.
double measure_peak_gflops(int threads);

}  // namespace rotrnn
