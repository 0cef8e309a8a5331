#include "rotrnn/training/loader.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "rotrnn/base/stopwatch.h"

namespace rotrnn {

BatchLoader::BatchLoader(const Examples& examples, const DataShape& shape, Sampler sampler,
                         int64_t first, int64_t end, int64_t parts, Shard shard,
                         std::vector<double> class_weights)
    : examples_(examples),
      shape_(shape),
      sampler_(std::move(sampler)),
      shard_(shard),
      class_weights_(std::move(class_weights)),
      thread_([this, first, end, parts] { work(first, end, parts); }) {}

BatchLoader::~BatchLoader() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

// How much these examples count in the mean of a loss: the number of their targets, or the sum of
// the weights of their classes.
double BatchLoader::weight(std::span<const int64_t> numbers) const {
  double sum = 0;
  std::vector<int64_t> labels;
  for (const int64_t i : numbers) {
    const int64_t targets = shape_.per_token ? examples_.length(i) : 1;
    if (class_weights_.empty()) {
      sum += static_cast<double>(targets);
      continue;
    }
    labels.assign(static_cast<size_t>(targets), examples_.label(i));
    if (shape_.per_token) examples_.write_token_labels(i, labels.data());
    for (const int64_t label : labels) sum += class_weights_[static_cast<size_t>(label)];
  }
  return sum;
}

std::vector<Batch> BatchLoader::cut(const std::vector<int64_t>& numbers, int64_t parts) const {
  const auto count = std::min<size_t>(static_cast<size_t>(parts), numbers.size());
  const double whole = weight(numbers);
  std::vector<Batch> batch;
  for (size_t k = 0; k < count; ++k) {
    const size_t begin = numbers.size() * k / count, stop = numbers.size() * (k + 1) / count;
    std::vector<int64_t> lengths, mine;
    for (size_t i = begin; i < stop; ++i) lengths.push_back(examples_.length(numbers[i]));
    for (const int64_t i : take_shard(lengths, shard_)) {
      mine.push_back(numbers[begin + static_cast<size_t>(i)]);
    }
    const bool placeholder = mine.empty();
    if (placeholder) mine.push_back(numbers[begin]);
    batch.push_back(make_batch(examples_, shape_, mine));
    batch.back().share = placeholder ? 0 : weight(mine) / whole;
    batch.back().placeholder = placeholder;
    batch.back().examples.assign(numbers.begin() + static_cast<ptrdiff_t>(begin),
                                 numbers.begin() + static_cast<ptrdiff_t>(stop));
    batch.back().step_tokens = std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
  }
  return batch;
}

void BatchLoader::work(int64_t first, int64_t end, int64_t parts) {
  try {
    for (int64_t step = first; step < end; ++step) {
      std::vector<Batch> batch = cut(sampler_.batch(step), parts);
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return stop_ || ready_.size() < kAhead; });
      if (stop_) return;
      ready_.push_back(std::move(batch));
      changed_.notify_all();
    }
  } catch (...) {
    const std::lock_guard lock(mutex_);
    error_ = std::current_exception();
    changed_.notify_all();
  }
}

std::vector<Batch> BatchLoader::next() {
  const kernels::Stopwatch watch(&waited_);
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !ready_.empty() || error_; });
  if (ready_.empty()) std::rethrow_exception(error_);
  std::vector<Batch> batch = std::move(ready_.front());
  ready_.pop_front();
  changed_.notify_all();
  return batch;
}

}  // namespace rotrnn
