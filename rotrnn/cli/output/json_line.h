#pragma once

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace rotrnn::cli {

/// A line of JSON on standard output. Names of files and classes need not be UTF-8; JSON must be,
/// so what is not becomes U+FFFD.
inline void print_json_line(const nlohmann::ordered_json& value) {
  fmt::print("{}\n", value.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

}  // namespace rotrnn::cli
