#pragma once

#include <string_view>

#include "rotrnn/data/guess/guess.h"

namespace rotrnn {

/// What a table is (an example a row, or a step of time a row) and what its columns are, from its
/// header and first rows. `files`: how many such tables there are; `told`: settings of the user,
/// whose columns need not be guessed. std::runtime_error that starts with `name` when it cannot be
/// told.
Guess guess_table(std::string_view content, const std::string& name, std::size_t files,
                  const TaskOptions& told = {});

}  // namespace rotrnn
