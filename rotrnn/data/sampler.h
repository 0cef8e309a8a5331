#pragma once

#include <cstdint>
#include <vector>

namespace rotrnn {

/// Which examples a training step sees: a pure function of (seed, step), so a resumed run goes on
/// with the same batches and nothing has to be saved.
class Sampler {
 public:
  /// std::invalid_argument when there are fewer examples than a batch holds.
  Sampler(int64_t examples, int64_t batch, uint64_t seed);

  /// The examples left over at the end of an epoch are dropped; the next shuffle mixes them in.
  int64_t steps_per_epoch() const { return examples_ / batch_; }

  /// Numbers of the examples of a step, counted from 0.
  std::vector<int64_t> batch(int64_t step);

 private:
  void shuffle(int64_t epoch);

  int64_t examples_, batch_;
  uint64_t seed_;
  int64_t epoch_ = -1;
  std::vector<int64_t> order_;
};

}  // namespace rotrnn
