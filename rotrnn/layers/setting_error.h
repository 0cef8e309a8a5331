#pragma once

#include <stdexcept>
#include <string>
#include <utility>

namespace rotrnn {

/// An invalid layer setting. `key` is its name below [model] in a config, such as "heads" or
/// "lru.r_min": the reader of the config adds where it was set.
class SettingError : public std::invalid_argument {
 public:
  SettingError(std::string key, const std::string& what)
      : std::invalid_argument(what), key_(std::move(key)) {}

  const std::string& key() const { return key_; }

 private:
  std::string key_;
};

}  // namespace rotrnn
