#pragma once

#include <cstdint>
#include <vector>

namespace rotrnn {

/// Which examples a training step sees: a pure function of (seed, step), so a resumed run goes on
/// with the same batches and nothing has to be saved.
class Sampler {
 public:
  /// Batches of `batch` examples; what is left over at the end of an epoch is dropped, and the next
  /// shuffle mixes it in. std::invalid_argument when there are fewer examples than a batch holds.
  Sampler(int64_t examples, int64_t batch, uint64_t seed);

  /// Batches that are filled, in the order of the shuffle, as long as their tokens stay within
  /// `tokens`; every example is seen in every epoch, and one that is longer is a batch of its own.
  Sampler(std::vector<int64_t> lengths, int64_t tokens, uint64_t seed);

  /// Of the first epoch; with a budget of tokens, others may have some more or fewer.
  int64_t steps_per_epoch();

  /// Numbers of the examples of a step, counted from 0.
  std::vector<int64_t> batch(int64_t step);

 private:
  void shuffle(int64_t epoch);
  void find_epoch(int64_t step);

  int64_t examples_, batch_ = 0, tokens_ = 0;
  std::vector<int64_t> lengths_;
  uint64_t seed_;
  int64_t epoch_ = -1;
  std::vector<int64_t> order_;
  std::vector<int64_t> ends_;        // of the batches of this epoch, in order_
  std::vector<int64_t> first_step_;  // of the epochs that are known, and of the one after them
};

}  // namespace rotrnn
