#pragma once

#include <functional>
#include <future>

#include "rotrnn/training/checkpoint/network_checkpoint.h"

namespace rotrnn {

/// Writes checkpoints on a thread of its own while the network trains on: flushing to the disk
/// can take longer than a step. One at a time, in order; the destructor waits for the one under
/// way.
class CheckpointSaver {
 public:
  /// Copies what is to be saved, has it written as save_checkpoint() does, and returns. `before`
  /// runs on that thread first. Waits for the save before, and throws what that threw.
  void save(const std::filesystem::path& folder, const Weights& weights, const Optimiser* optimiser,
            CheckpointHeader header, const std::filesystem::path& previous,
            std::function<void()> before);

  /// Throws what the last save threw if it has ended badly; does not wait.
  void check();

  /// Waits until all is on the disk; throws what saving threw.
  void wait();

 private:
  std::future<void> pending_;
};

}  // namespace rotrnn
