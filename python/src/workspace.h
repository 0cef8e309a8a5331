#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "rotrnn/base/arena.h"
#include "rotrnn/kernels/block/block.h"

/// Memory that outlives the calls it was taken for, so that a steady training step allocates
/// nothing large.
namespace rotrnn::python {

/// What one forward call keeps for its backward call.
struct Workspace {
  kernels::Arena arena;
  kernels::BlockSaved saved;
};

/// Unused arenas, or workspaces with one. Thread-safe.
template <class T>
class Shelf {
 public:
  /// The smallest that holds `bytes` without growing, else the largest, else a new one.
  std::unique_ptr<T> take(size_t bytes) {
    const std::lock_guard lock(mutex_);
    size_t best = free_.size();
    for (size_t i = 0; i < free_.size(); ++i) {
      const size_t size = capacity(*free_[i]);
      if (best == free_.size()) {
        best = i;
        continue;
      }
      const size_t chosen = capacity(*free_[best]);
      if (chosen >= bytes ? size >= bytes && size < chosen : size > chosen) best = i;
    }
    if (best == free_.size()) return std::make_unique<T>();
    std::unique_ptr<T> taken = std::move(free_[best]);
    free_[best] = std::move(free_.back());
    free_.pop_back();
    return taken;
  }

  void put(std::unique_ptr<T> item) {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(item));
  }

  /// Gives the memory back to the system; how many bytes that were.
  size_t clear() {
    const std::lock_guard lock(mutex_);
    size_t bytes = 0;
    for (const auto& item : free_) bytes += capacity(*item);
    free_.clear();
    return bytes;
  }

 private:
  static size_t capacity(const kernels::Arena& arena) { return arena.capacity(); }
  static size_t capacity(const Workspace& workspace) { return workspace.arena.capacity(); }

  std::mutex mutex_;
  std::vector<std::unique_ptr<T>> free_;
};

}  // namespace rotrnn::python
