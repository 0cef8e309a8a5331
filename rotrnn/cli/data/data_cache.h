#pragma once

#include "rotrnn/cli/command.h"

namespace rotrnn::cli {

/// Adds `data cache`.
void add_data_cache(CLI::App& data, Action& action);

}  // namespace rotrnn::cli
