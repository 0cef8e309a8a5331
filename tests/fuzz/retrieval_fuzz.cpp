// tests/fuzz/run build/fuzz 600 retrieval
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string_view>

#include "rotrnn/base/text/utf8.h"
#include "rotrnn/data/tasks/retrieval.h"
#include "rotrnn/io/lines.h"

// Any bytes give lines that are parts of them, and pairs in UTF-8 without tabs, or the one
// documented error.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  std::size_t at = 0, seen = 0;
  const rotrnn::ReadBytes read = [&](char* out, std::size_t room) {
    const std::size_t count = std::min(room, size - at);
    if (count > 0) std::memcpy(out, data + at, count);
    at += count;
    return count;
  };
  rotrnn::LineReader lines(read, "fuzz", 10'000);
  try {
    for (std::string_view line; lines.next(line);) {
      seen += line.size() + 1;
      try {
        const auto pair = rotrnn::parse_retrieval(line, lines.place());
        for (const std::string_view text : {pair.first, pair.second}) {
          if (text.find('\t') != std::string_view::npos) std::abort();
          if (rotrnn::find_not_utf8(text) != std::string_view::npos) std::abort();
        }
      } catch (const std::runtime_error&) {
        // A bad line; the others are read.
      }
    }
    if (seen > size + 1) std::abort();
  } catch (const std::runtime_error&) {
    // A line that is too long.
  }
  return 0;
}
