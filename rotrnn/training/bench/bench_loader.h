#pragma once

#include <cstdint>

#include "rotrnn/training/config/config.h"

namespace rotrnn {

/// What loading gives and training takes, measured in one run on the data of a config.
struct LoaderBench {
  int64_t examples = 0, tokens = 0;           // of the training split
  double read_seconds = 0;                    // decoding the files
  double cached_seconds = 0;                  // the same with the decoded data on disk
  double loader_rate = 0, training_rate = 0;  // tokens per second, each on its own
  double together_rate = 0;                   // of training with the loader at work beside it
  double waited = 0;                          // share of that time spent waiting for it
};

/// Measures each for about `seconds`.
LoaderBench bench_loader(const Config& config, double seconds);

}  // namespace rotrnn
