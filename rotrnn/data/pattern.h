#pragma once

#include <optional>
#include <regex>
#include <string>

namespace rotrnn {

/// A regular expression of a config (ECMAScript), searched for in names.
class Pattern {
 public:
  /// `key` is the setting's name; empty text is a pattern that is never found.
  /// std::invalid_argument when the text is not a regular expression.
  Pattern(const std::string& key, const std::string& text);

  bool found(const std::string& name) const;

  /// The first group of the first place it is found at, or all of that without a group; nothing
  /// when it is not found.
  std::optional<std::string> capture(const std::string& name) const;

 private:
  std::optional<std::regex> regex_;
};

}  // namespace rotrnn
