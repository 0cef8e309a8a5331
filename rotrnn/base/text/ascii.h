#pragma once

#include <string>
#include <string_view>

namespace rotrnn {

/// Text with A to Z as a to z, whatever the locale; other bytes stay.
inline std::string ascii_lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  return out;
}

}  // namespace rotrnn
