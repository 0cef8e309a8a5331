#pragma once

#include <cstdint>
#include <string>

#include "rotrnn/board/beneath.h"
#include "rotrnn/board/metrics.h"

namespace rotrnn::board {

/// metrics.jsonl of a run, followed while it grows: only new bytes are read, in small pieces, and a
/// line counts when its end is there. A file that was replaced or cut is read from its beginning.
class MetricsFile {
 public:
  static constexpr size_t kMostLine = 1 << 20;  // longer lines are left out

  /// Reads what is new, at most about `budget` bytes.
  void read(const Beneath& folder, const std::filesystem::path& file, size_t budget);

  /// The same of bytes that follow those before.
  void take(std::string_view bytes);

  const Metrics& metrics() const { return metrics_; }
  bool exists() const { return exists_; }
  int64_t offset() const { return offset_; }
  int64_t size() const { return size_; }
  bool more() const { return offset_ < size_; }
  /// Which reading this is: it grows when what was sent before is no longer valid.
  uint64_t generation() const { return resets_ + metrics_.generation(); }

 private:
  void reset();
  bool continues(const OpenFile& file, const struct stat& status) const;

  Metrics metrics_;
  std::string rest_;  // a line without its end
  bool skipping_ = false;
  std::string tail_;  // the last bytes read, to see whether they are still there
  bool exists_ = false;
  int64_t offset_ = 0, size_ = 0;
  uint64_t device_ = 0, inode_ = 0, resets_ = 0;
};

}  // namespace rotrnn::board
