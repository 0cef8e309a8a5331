#include "rotrnn/io/lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace rotrnn {
namespace {

constexpr std::size_t kLinesPiece = std::size_t{1} << 18;

}  // namespace

// Moves what is left to the front and reads more after it; false when there is no more.
bool LineReader::fill() {
  if (ended_) return false;
  if (begin_ > 0) std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
  if (end_ > limit_) {
    place().fail(
        fmt::format("the line is longer than {} bytes; is it a file of another kind?", limit_));
  }
  if (buffer_.size() < end_ + kLinesPiece) buffer_.resize(std::max(end_ + kLinesPiece, 2 * end_));
  const std::size_t wanted = buffer_.size() - end_;
  const std::size_t count = read_(buffer_.data() + end_, wanted);
  end_ += count;
  ended_ = count < wanted;
  return count > 0;
}

bool LineReader::next(std::string_view& line) {
  ++line_;
  for (std::size_t searched = 0;;) {
    const char* from = buffer_.data() + begin_;
    const std::size_t there = end_ - begin_;
    const void* found =
        there > searched ? std::memchr(from + searched, '\n', there - searched) : nullptr;
    if (found) {
      line = {from, static_cast<std::size_t>(static_cast<const char*>(found) - from)};
      begin_ += line.size() + 1;
      break;
    }
    searched = there;
    if (fill()) continue;
    if (there == 0) return false;
    line = {buffer_.data() + begin_, there};
    begin_ = end_;
    break;
  }
  if (line.ends_with('\r')) line.remove_suffix(1);
  return true;
}

}  // namespace rotrnn
