#pragma once

#include "rotrnn/cli/command.h"

namespace rotrnn::cli {

/// `rotrnn data inspect PATH`: what is in a set of any task.
void add_data_inspect(CLI::App& data, Action& action);

}  // namespace rotrnn::cli
