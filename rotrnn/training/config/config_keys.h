#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <variant>
#include <vector>

#include "rotrnn/training/config/config.h"

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

/// A key of the config, bound to the place in one Config where its value lives.
struct BoundKey {
  std::string name;
  std::variant<IntegerKey, NumberKey, ChoiceKey, bool*, std::string*> place;
  std::string help;
};

/// Every key there is, bound to `config`: the one table that reading, writing, checking and
/// documenting a config go through.
std::vector<BoundKey> bind_keys(Config& config);

}  // namespace rotrnn
