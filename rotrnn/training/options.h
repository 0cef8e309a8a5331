#pragma once

#include <cstdint>

#include "rotrnn/base/enum_names.h"
#include "rotrnn/network/engine.h"

namespace rotrnn {

/// How much a class counts in the loss: as often as it occurs, or all the same.
enum class ClassWeights { none, balanced };
template <>
inline constexpr std::array kNames<ClassWeights>{"none", "balanced"};

/// What training minimises (network/losses.h); automatic: cross_entropy for classes, mean_square
/// for values.
enum class TrainingLoss { automatic, cross_entropy, mean_square, mean_absolute, huber };
template <>
inline constexpr std::array kNames<TrainingLoss>{"automatic", "cross_entropy", "mean_square",
                                                 "mean_absolute", "huber"};

/// The settings of [training] in a config.
struct TrainingOptions {
  int64_t steps = 1000;
  int64_t batch = 32;        // sequences of one optimiser step
  int64_t batch_tokens = 0;  // 0: batches by count; else filled up to this many tokens
  TrainingLoss loss = TrainingLoss::automatic;
  double huber_delta = 1;  // in standard deviations of a target
  ClassWeights class_weights = ClassWeights::none;
  int64_t accumulate = 1;  // parts that a batch is computed in, one after the other
  double global_lr = 1e-3;
  double recurrent_lr = 1e-3;
  double lr_floor = 0;  // share of the peak that the cosine ends at
  double weight_decay = 0.05;
  double warmup = 0.1;  // below 1: share of the steps; from 1 on: epochs
  double clip = 0;      // largest norm of the whole gradient; 0: no clipping
  int64_t seed = 0;
  int64_t log_every = 10;
  int64_t evaluate_every = 500;
  int64_t checkpoint_every = 500;
  int64_t keep_checkpoint_every = 0;  // 0: none but the last two and the best
  int64_t non_finite_limit = 10;      // steps skipped in a row before training stops
  int64_t norms_every = 0;            // 0: hidden states are measured at every evaluation
  bool tensorboard = true;            // event files beside metrics.jsonl
  int64_t threads = 0;                // 0: as many as the process may use
  Kernels kernels = Kernels::fused;
  MemoryMode memory = MemoryMode::normal;

  EngineOptions engine() const {
    EngineOptions e;
    e.kernels = kernels;
    e.memory = memory;
    e.threads = static_cast<int>(threads);
    return e;
  }
};

}  // namespace rotrnn
