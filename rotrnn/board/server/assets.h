#pragma once

#include <string_view>

namespace rotrnn::board {

/// A file of web/, or of dygraphs, as it was when the program was built; empty: there is none.
std::string_view asset(std::string_view name);

}  // namespace rotrnn::board
