#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "rotrnn/base/text/text_place.h"
#include "rotrnn/io/files.h"

namespace rotrnn {

/// Default of the longest line that is read.
inline constexpr std::size_t kMaxLineBytes = std::size_t{1} << 26;

/// The lines of a file of any size, which end in LF or CR LF; the last one may lack it.
class LineReader {
 public:
  /// `read` and `name` must outlive the object.
  LineReader(const ReadBytes& read, std::string_view name, std::size_t limit = kMaxLineBytes)
      : read_(read), name_(name), limit_(limit) {}

  /// The next line without its end, valid until the next call; false at the end. A line over the
  /// limit throws std::runtime_error `name:line: …`.
  bool next(std::string_view& line);

  /// Where the line read last is.
  TextPlace place() const { return {name_, line_}; }

 private:
  bool fill();

  const ReadBytes& read_;
  std::string_view name_;
  std::size_t limit_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0, end_ = 0;  // of what is in the buffer and was not given out
  bool ended_ = false;
  int64_t line_ = 0;
};

}  // namespace rotrnn
