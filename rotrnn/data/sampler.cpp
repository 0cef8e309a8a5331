#include "rotrnn/data/sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "rotrnn/data/shuffle.h"

namespace rotrnn {
namespace {

void check_count(int64_t examples) {
  if (examples > std::numeric_limits<uint32_t>::max()) {
    throw std::invalid_argument("more than 2^32 training examples");
  }
}

}  // namespace

Sampler::Sampler(int64_t examples, int64_t batch, uint64_t seed)
    : examples_(examples), batch_(batch), seed_(seed), first_step_{0} {
  if (batch < 1 || batch > examples) {
    throw std::invalid_argument(
        fmt::format("training.batch is {} but there are {} training examples; choose a batch "
                    "between 1 and {}",
                    batch, examples, examples));
  }
  check_count(examples);
}

Sampler::Sampler(std::vector<int64_t> lengths, int64_t tokens, uint64_t seed)
    : examples_(std::ssize(lengths)),
      tokens_(tokens),
      lengths_(std::move(lengths)),
      seed_(seed),
      first_step_{0} {
  if (tokens < 1 || examples_ < 1) {
    throw std::invalid_argument("training.batch_tokens: there are no training examples");
  }
  check_count(examples_);
}

void Sampler::shuffle(int64_t epoch) {
  epoch_ = epoch;
  order_ = shuffled(examples_, Random(seed_, RandomSite::shuffle, {static_cast<uint64_t>(epoch)}));
  ends_.clear();
  if (tokens_ == 0) {
    for (int64_t end = batch_; end <= examples_; end += batch_) ends_.push_back(end);
  } else {
    int64_t filled = 0;
    for (int64_t i = 0; i < examples_; ++i) {
      const int64_t length = lengths_[order_[i]];
      if (i > 0 && filled + length > tokens_) {
        ends_.push_back(i);
        filled = 0;
      }
      filled += length;
    }
    ends_.push_back(examples_);
  }
  if (epoch + 1 == std::ssize(first_step_)) {
    first_step_.push_back(first_step_.back() + std::ssize(ends_));
  }
}

// Epochs may differ in their number of batches, so they are counted one after the other.
void Sampler::find_epoch(int64_t step) {
  while (first_step_.back() <= step) shuffle(std::ssize(first_step_) - 1);
  const auto after = std::upper_bound(first_step_.begin(), first_step_.end(), step);
  const int64_t epoch = after - first_step_.begin() - 1;
  if (epoch != epoch_) shuffle(epoch);
}

int64_t Sampler::steps_per_epoch() {
  find_epoch(0);
  return first_step_[1];
}

std::vector<int64_t> Sampler::batch(int64_t step) {
  find_epoch(step);
  const int64_t number = step - first_step_[epoch_];
  return {order_.begin() + (number == 0 ? 0 : ends_[number - 1]), order_.begin() + ends_[number]};
}

}  // namespace rotrnn
