#pragma once

#include "rotrnn/cli/command.h"

namespace rotrnn::cli {

/// `rotrnn data list`: where the data of each task come from.
void add_data_list(CLI::App& data, Action& action);

/// `rotrnn data download TASK`: fetches and unpacks them.
void add_data_download(CLI::App& data, Action& action);

}  // namespace rotrnn::cli
