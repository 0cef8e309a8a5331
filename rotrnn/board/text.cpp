#include "rotrnn/board/text.h"

#include "rotrnn/base/text/utf8.h"

namespace rotrnn::board {

std::string clean_text(std::string_view text, size_t most) {
  constexpr char32_t kReplacement = 0xfffd;
  std::string out;
  for (size_t at = 0; at < text.size() && out.size() < most;) {
    char32_t c = next_code_point(text, at);
    if (c == kNotUtf8) {
      ++at;
      c = kReplacement;
    }
    const bool control = c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0xfffe || c == 0xffff;
    append_utf8(out, control ? kReplacement : c);
  }
  return out;
}

}  // namespace rotrnn::board
