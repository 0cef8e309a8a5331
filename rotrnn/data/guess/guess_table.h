#pragma once

#include <string_view>

#include "rotrnn/data/guess/guess.h"

namespace rotrnn {

/// What a table is (one example or one time step per row) and what its columns are, from its
/// header and first rows. `files`: how many such tables there are; `given`: settings of the user,
/// whose columns need not be guessed. std::runtime_error that starts with `name` when that is
/// not clear.
Guess guess_table(std::string_view content, const std::string& name, std::size_t files,
                  const TaskOptions& given = {});

}  // namespace rotrnn
