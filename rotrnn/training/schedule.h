#pragma once

#include <cstdint>

#include "rotrnn/training/options.h"

namespace rotrnn {

/// Steps of linear warm-up: `warmup` is a share of all steps, or a number of epochs from 1 on.
int64_t warmup_steps(const TrainingOptions& options, int64_t steps_per_epoch);

/// Factor on both learning rates at a step counted from 0: a line up, then a cosine down to the
/// floor, which the last step reaches.
double learning_rate_factor(const TrainingOptions& options, int64_t steps_per_epoch, int64_t step);

}  // namespace rotrnn
