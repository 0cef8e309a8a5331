#pragma once

#include "rotrnn/cli/command.h"

namespace rotrnn::cli {

/// Declares `make pathfinder` and `make pathx`.
void add_make_pathfinder(CLI::App& make, Action& action);

}  // namespace rotrnn::cli
