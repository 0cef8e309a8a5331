#include "rotrnn/base/text/text_place.h"

#include <fmt/format.h>

#include <stdexcept>

#include "rotrnn/base/text/utf8.h"

namespace rotrnn {

void TextPlace::fail(const std::string& what) const {
  throw std::runtime_error(fmt::format("{}:{}: {}", name, line, what));
}

std::string excerpt(std::string_view text) {
  constexpr int kShown = 40;
  std::string out;
  std::size_t at = 0;
  for (int shown = 0; at < text.size() && shown < kShown; ++shown) {
    const std::size_t from = at;
    const char32_t c = next_code_point(text, at);
    if (c == kNotUtf8) ++at;
    const bool control = c < ' ' || (c >= 0x7f && c < 0xa0) || c == kNotUtf8;
    out += control ? std::string_view("?") : text.substr(from, at - from);
  }
  return fmt::format("\"{}{}\"", out, at < text.size() ? "..." : "");
}

}  // namespace rotrnn
