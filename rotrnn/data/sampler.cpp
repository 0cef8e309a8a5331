#include "rotrnn/data/sampler.h"

#include <fmt/format.h>

#include <limits>
#include <stdexcept>

#include "rotrnn/data/shuffle.h"

namespace rotrnn {

Sampler::Sampler(int64_t examples, int64_t batch, uint64_t seed)
    : examples_(examples), batch_(batch), seed_(seed) {
  if (batch < 1 || batch > examples) {
    throw std::invalid_argument(
        fmt::format("training.batch is {} but there are {} training examples; choose a batch "
                    "between 1 and {}",
                    batch, examples, examples));
  }
  if (examples > std::numeric_limits<uint32_t>::max()) {
    throw std::invalid_argument("more than 2^32 training examples");
  }
}

void Sampler::shuffle(int64_t epoch) {
  epoch_ = epoch;
  order_ = shuffled(examples_, Random(seed_, RandomSite::shuffle, {static_cast<uint64_t>(epoch)}));
}

std::vector<int64_t> Sampler::batch(int64_t step) {
  const int64_t epoch = step / steps_per_epoch();
  if (epoch != epoch_) shuffle(epoch);
  const auto begin = order_.begin() + (step % steps_per_epoch()) * batch_;
  return {begin, begin + batch_};
}

}  // namespace rotrnn
