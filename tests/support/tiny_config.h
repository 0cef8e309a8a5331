#pragma once

#include "rotrnn/training/config/config.h"

namespace rotrnn::test {

/// A run of a fraction of a second, with everything a long one has.
inline Config tiny_config() {
  return parse_config(R"(
[task]
train = 200
validation = 40
test = 40
min_length = 5
max_length = 30
max_depth = 3
max_args = 4
[model]
width = 8
state = 8
heads = 2
depth = 2
dropout = 0.1
[training]
steps = 24
batch = 8
log_every = 5
evaluate_every = 7
checkpoint_every = 6
global_lr = 1e-2
threads = 1
)",
                      "tiny");
}

}  // namespace rotrnn::test
