#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <variant>
#include <vector>

#include "rotrnn/base/enum_names.h"

namespace rotrnn {

/// A whole number with its bounds.
struct IntegerKey {
  int64_t* value;
  int64_t low = 0, high = std::numeric_limits<int64_t>::max();
};

/// A real number within [low, high), or (low, high) when `open`.
struct NumberKey {
  double* value;
  double low = 0, high = std::numeric_limits<double>::infinity();
  bool open = false;
};

/// One of several names; the value is an enumeration, seen through its number.
struct ChoiceKey {
  std::vector<std::string> names;
  std::function<size_t()> get;
  std::function<void(size_t)> set;
};

/// By the names that the enumeration has.
template <typename Enum>
ChoiceKey choice(Enum& value) {
  return {names_of<Enum>(), [&value] { return static_cast<size_t>(value); },
          [&value](size_t i) { value = static_cast<Enum>(i); }};
}

/// A key of a config, bound to the place where its value lives.
struct BoundKey {
  std::string name;
  std::variant<IntegerKey, NumberKey, ChoiceKey, bool*, std::string*> place;
  std::string help;
};

/// The value as TOML.
std::string value_text(const BoundKey& key);

}  // namespace rotrnn
