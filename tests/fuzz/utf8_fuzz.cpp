// clang++ -std=c++20 -g -O1 -fsanitize=fuzzer,address -I. tests/fuzz/utf8_fuzz.cpp
//   rotrnn/base/text/utf8.cpp -lfmt -o utf8_fuzz
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>

#include "rotrnn/base/text/utf8.h"

// Text that is accepted, and the part before the first bad byte, are what encoding their code
// points gives; the rest is refused.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::size_t bad = rotrnn::find_not_utf8(text);
  const std::string_view good = text.substr(0, bad);
  std::string again;
  for (const char32_t code : rotrnn::decode_utf8(good, "fuzz")) rotrnn::append_utf8(again, code);
  if (again != good) std::abort();
  if (bad == text.npos) return 0;
  try {
    rotrnn::decode_utf8(text, "fuzz");
  } catch (const std::runtime_error&) {
    return 0;
  }
  std::abort();
}
