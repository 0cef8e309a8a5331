#include "rotrnn/training/loader.h"

#include <algorithm>
#include <stdexcept>

#include "rotrnn/kernels/stopwatch.h"

namespace rotrnn {

BatchLoader::BatchLoader(const Examples& examples, const DataShape& shape, Sampler sampler,
                         int64_t first, int64_t end, int64_t parts)
    : examples_(examples),
      shape_(shape),
      sampler_(std::move(sampler)),
      thread_([this, first, end, parts] { work(first, end, parts); }) {}

BatchLoader::~BatchLoader() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void BatchLoader::work(int64_t first, int64_t end, int64_t parts) {
  try {
    for (int64_t step = first; step < end; ++step) {
      const auto numbers = sampler_.batch(step);
      const auto count = std::min<size_t>(static_cast<size_t>(parts), numbers.size());
      std::vector<Batch> batch;
      for (size_t k = 0; k < count; ++k) {
        const size_t begin = numbers.size() * k / count, stop = numbers.size() * (k + 1) / count;
        batch.push_back(make_batch(examples_, shape_, {&numbers[begin], stop - begin}));
      }
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
