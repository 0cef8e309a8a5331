#include "rotrnn/training/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace rotrnn {

int64_t warmup_steps(const TrainingOptions& options, int64_t steps_per_epoch) {
  const double base = options.warmup < 1 ? static_cast<double>(options.steps)
                                         : static_cast<double>(steps_per_epoch);
  return std::min(options.steps, static_cast<int64_t>(std::llround(options.warmup * base)));
}

double learning_rate_factor(const TrainingOptions& options, int64_t steps_per_epoch, int64_t step) {
  const int64_t warmup = warmup_steps(options, steps_per_epoch);
  if (step < warmup) return static_cast<double>(step + 1) / static_cast<double>(warmup);
  const int64_t rest = std::max<int64_t>(1, options.steps - warmup - 1);
  const double done = std::min(1.0, static_cast<double>(step - warmup) / static_cast<double>(rest));
  return options.lr_floor + (1 - options.lr_floor) * 0.5 * (1 + std::cos(std::numbers::pi * done));
}

}  // namespace rotrnn
