#include "rotrnn/data/pattern.h"

#include <fmt/format.h>

#include <stdexcept>

namespace rotrnn {

Pattern::Pattern(const std::string& key, const std::string& text) {
  if (text.empty()) return;
  try {
    regex_.emplace(text);
  } catch (const std::regex_error& error) {
    throw std::invalid_argument(
        fmt::format("{}: \"{}\" is not a regular expression: {}", key, text, error.what()));
  }
}

bool Pattern::found(const std::string& name) const {
  return regex_ && std::regex_search(name, *regex_);
}

std::optional<std::string> Pattern::capture(const std::string& name) const {
  std::smatch match;
  if (!regex_ || !std::regex_search(name, match, *regex_)) return std::nullopt;
  return match.size() > 1 ? match[1].str() : match[0].str();
}

}  // namespace rotrnn
