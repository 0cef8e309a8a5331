#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace rotrnn {

/// A line of a text file, for messages.
struct TextPlace {
  std::string_view name;
  int64_t line = 1;

  /// Throws std::runtime_error `name:line: what`.
  [[noreturn]] void fail(const std::string& what) const;
};

/// What came from a file, in quotes, cut to a length for one line, bytes that a terminal would not
/// show masked.
std::string excerpt(std::string_view text);

}  // namespace rotrnn
