#include "rotrnn/base/text/utf8.h"

#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <stdexcept>

namespace rotrnn {
namespace {

// Most text is ASCII: eight bytes at a time.
std::size_t skip_ascii(std::string_view text, std::size_t at) {
  for (; at + 8 <= text.size(); at += 8) {
    uint64_t eight;
    std::memcpy(&eight, text.data() + at, 8);
    if (eight & 0x8080808080808080u) break;
  }
  while (at < text.size() && static_cast<unsigned char>(text[at]) < 0x80) ++at;
  return at;
}

// What the first byte says: how many follow, and the range of the second, which is where overlong
// forms, surrogates and too large numbers show.
struct Lead {
  int more;
  unsigned char low, high;
};

Lead lead_of(unsigned char byte) {
  if (byte >= 0xc2 && byte <= 0xdf) return {1, 0x80, 0xbf};
  if (byte == 0xe0) return {2, 0xa0, 0xbf};
  if (byte == 0xed) return {2, 0x80, 0x9f};
  if (byte >= 0xe1 && byte <= 0xef) return {2, 0x80, 0xbf};
  if (byte == 0xf0) return {3, 0x90, 0xbf};
  if (byte >= 0xf1 && byte <= 0xf3) return {3, 0x80, 0xbf};
  if (byte == 0xf4) return {3, 0x80, 0x8f};
  return {0, 0, 0};
}

}  // namespace

char32_t next_code_point(std::string_view text, std::size_t& at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(at);
  if (first < 0x80) {
    ++at;
    return first;
  }
  const Lead lead = lead_of(first);
  if (lead.more == 0 || text.size() - at <= static_cast<std::size_t>(lead.more)) return kNotUtf8;
  if (byte(at + 1) < lead.low || byte(at + 1) > lead.high) return kNotUtf8;
  char32_t code = first & (0x3fu >> lead.more);
  for (int i = 1; i <= lead.more; ++i) {
    const unsigned char next = byte(at + static_cast<std::size_t>(i));
    if ((next & 0xc0) != 0x80) return kNotUtf8;
    code = code << 6 | (next & 0x3fu);
  }
  at += static_cast<std::size_t>(lead.more) + 1;
  return code;
}

std::size_t find_not_utf8(std::string_view text) {
  for (std::size_t at = 0;;) {
    at = skip_ascii(text, at);
    if (at == text.size()) return std::string_view::npos;
    if (next_code_point(text, at) == kNotUtf8) return at;
  }
}

std::vector<char32_t> decode_utf8(std::string_view text, std::string_view name) {
  std::vector<char32_t> out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const char32_t code = next_code_point(text, at);
    if (code == kNotUtf8) {
      throw std::runtime_error(
          fmt::format("{}: offset {}: {}", name, at, not_utf8_message(text, at)));
    }
    out.push_back(code);
  }
  return out;
}

void append_utf8(std::string& out, char32_t code) {
  const auto tail = [&](int shift) { out += static_cast<char>(0x80 | ((code >> shift) & 0x3f)); };
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xc0 | code >> 6);
    tail(0);
  } else if (code < 0x10000) {
    out += static_cast<char>(0xe0 | code >> 12);
    tail(6), tail(0);
  } else {
    out += static_cast<char>(0xf0 | code >> 18);
    tail(12), tail(6), tail(0);
  }
}

std::string_view without_bom(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  return text;
}

std::string not_utf8_message(std::string_view text, std::size_t at) {
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff")) {
    return "the text is UTF-16; save it as UTF-8";
  }
  return fmt::format("the byte 0x{:02x} is not UTF-8; save the text as UTF-8",
                     static_cast<unsigned char>(text[at]));
}

}  // namespace rotrnn
