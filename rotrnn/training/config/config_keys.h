#pragma once

#include <vector>

#include "rotrnn/base/option_key.h"
#include "rotrnn/training/config/config.h"

namespace rotrnn {

/// Every key there is, bound to `config`: the one table that reading, writing, checking and
/// documenting a config go through.
std::vector<BoundKey> bind_keys(Config& config);

}  // namespace rotrnn
