#pragma once

#include <string>

namespace rotrnn::cli {

/// Whether the name is that of an exported model rather than of a config.
bool is_model_file(const std::string& path);

/// What an exported model takes and gives; returns the exit code.
int print_model(const std::string& path, bool json);

}  // namespace rotrnn::cli
