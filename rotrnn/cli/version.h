#pragma once

#include <string>

namespace rotrnn::cli {

/// What a report of a bug should begin with: version, commit, compiler, CPU, kernels, threads and
/// what several processes would talk through. A few lines of which the first is "rotrnn VERSION",
/// or one line of JSON.
std::string version_text(bool json);

}  // namespace rotrnn::cli
