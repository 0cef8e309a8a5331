#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "rotrnn/data/sampler.h"
#include "rotrnn/distributed/shard.h"
#include "rotrnn/training/batch.h"

namespace rotrnn {

/// Puts the batches of coming steps together on a thread of its own, while the network computes:
/// reading from a mapped file, splitting text into characters and scaling do not delay it.
class BatchLoader {
 public:
  /// From step `first` up to before `end`, each in `parts` parts (fewer when it has fewer
  /// examples), and of each part what falls to `shard`. A class counts with its weight in the share
  /// that a part has of the loss; none: all count the same. `examples` must outlive the loader.
  BatchLoader(const Examples& examples, const DataShape& shape, Sampler sampler, int64_t first,
              int64_t end, int64_t parts, Shard shard = {}, std::vector<double> class_weights = {});
  ~BatchLoader();
  BatchLoader(const BatchLoader&) = delete;
  BatchLoader& operator=(const BatchLoader&) = delete;

  /// The batch of the next step, in its parts; throws what putting it together threw.
  std::vector<Batch> next();

  /// Seconds that next() has waited so far.
  double waited() const { return waited_; }

 private:
  void work(int64_t first, int64_t end, int64_t parts);
  std::vector<Batch> cut(const std::vector<int64_t>& numbers, int64_t parts) const;
  double weight(std::span<const int64_t> numbers) const;

  static constexpr size_t kAhead = 4;  // steps that are ready at most

  const Examples& examples_;
  DataShape shape_;
  Sampler sampler_;
  Shard shard_;
  std::vector<double> class_weights_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::vector<Batch>> ready_;
  std::exception_ptr error_;
  bool stop_ = false;
  double waited_ = 0;
  std::thread thread_;
};

}  // namespace rotrnn
