#include "rotrnn/board/metrics_file.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace rotrnn::board {
namespace {

constexpr size_t kPiece = 1 << 18, kTail = 64;

ssize_t read_at(const OpenFile& file, char* to, size_t count, int64_t offset) {
  for (;;) {
    const ssize_t got = ::pread(file.descriptor(), to, count, offset);
    if (got >= 0 || errno != EINTR) return got;
  }
}

}  // namespace

void MetricsFile::reset() {
  resets_ = generation() + 1;
  metrics_ = Metrics();
  rest_.clear();
  tail_.clear();
  skipping_ = false;
  offset_ = size_ = 0;
}

bool MetricsFile::continues(const OpenFile& file, const struct stat& status) const {
  if (status.st_dev != device_ || status.st_ino != inode_ || status.st_size < offset_) return false;
  std::string now(tail_.size(), '\0');
  const auto size = static_cast<ssize_t>(now.size());
  return read_at(file, now.data(), now.size(), offset_ - size) == size && now == tail_;
}

void MetricsFile::read(const Beneath& folder, const std::filesystem::path& path, size_t budget) {
  const OpenFile file = folder.open(path);
  struct stat status {};
  if (!file || ::fstat(file.descriptor(), &status) != 0) {
    if (exists_) reset();
    exists_ = false;
    return;
  }
  if (exists_ && !continues(file, status)) reset();
  exists_ = true;
  device_ = status.st_dev;
  inode_ = status.st_ino;
  size_ = status.st_size;
  std::string piece(kPiece, '\0');
  for (size_t taken = 0; offset_ < size_ && taken < budget;) {
    const ssize_t got = read_at(file, piece.data(), piece.size(), offset_);
    if (got <= 0) {
      size_ = offset_;  // shorter than its size said: the next reading sees
      break;
    }
    const std::string_view bytes(piece.data(), static_cast<size_t>(got));
    take(bytes);
    offset_ += got;
    taken += bytes.size();
    tail_ += bytes.substr(bytes.size() - std::min(bytes.size(), kTail));
    if (tail_.size() > kTail) tail_.erase(0, tail_.size() - kTail);
  }
  size_ = std::max(size_, offset_);
}

void MetricsFile::take(std::string_view bytes) {
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    const std::string_view part = bytes.substr(0, end);
    if (!skipping_ && rest_.size() + part.size() > kMostLine) {
      rest_.clear();
      rest_.shrink_to_fit();
      skipping_ = true;
    }
    if (!skipping_) {
      if (end != std::string_view::npos && rest_.empty()) {
        metrics_.add_line(part);
      } else {
        rest_ += part;
        if (end != std::string_view::npos) metrics_.add_line(rest_);
      }
    }
    if (end == std::string_view::npos) return;
    rest_.clear();
    skipping_ = false;
    bytes.remove_prefix(end + 1);
  }
}

}  // namespace rotrnn::board
