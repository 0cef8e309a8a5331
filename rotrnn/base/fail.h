#pragma once

#include <stdexcept>
#include <string>

namespace rotrnn {

/// Throws std::runtime_error `where: what`; where is a file, a folder, an address.
[[noreturn]] inline void fail(const std::string& where, const std::string& what) {
  throw std::runtime_error(where + ": " + what);
}

}  // namespace rotrnn
