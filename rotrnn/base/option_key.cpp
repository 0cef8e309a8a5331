#include "rotrnn/base/option_key.h"

#include <fmt/format.h>

namespace rotrnn {
namespace {

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\u{:04x}", static_cast<int>(c));
    } else {
      out += c;
    }
  }
  return out + "\"";
}

// Shortest text that reads back as the same double, and as a TOML float.
std::string number_text(double value) {
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  return text;
}

struct ValueText {
  std::string operator()(const IntegerKey& k) const { return std::to_string(*k.value); }
  std::string operator()(const NumberKey& k) const { return number_text(*k.value); }
  std::string operator()(const ChoiceKey& k) const { return quoted(k.names[k.get()]); }
  std::string operator()(const bool* k) const { return *k ? "true" : "false"; }
  std::string operator()(const std::string* k) const { return quoted(*k); }
};

}  // namespace

std::string value_text(const BoundKey& key) {
  return std::visit(ValueText{}, key.place);
}

}  // namespace rotrnn
