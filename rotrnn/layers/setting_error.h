#pragma once

#include <stdexcept>
#include <string>
#include <utility>

namespace rotrnn {

/// A setting of a layer that cannot be. `key` is its name below [model] in a config, such as
/// "heads" or "lru.r_min", so that whoever read the config can say where it was set.
class SettingError : public std::invalid_argument {
 public:
  SettingError(std::string key, const std::string& what)
      : std::invalid_argument(what), key_(std::move(key)) {}

  const std::string& key() const { return key_; }

 private:
  std::string key_;
};

}  // namespace rotrnn
