#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rotrnn {

/// The candidate nearest to a misspelt word, or nothing when none is near.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace rotrnn
