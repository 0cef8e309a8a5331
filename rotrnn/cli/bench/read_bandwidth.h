#pragma once

#include <cstddef>

namespace rotrnn::cli {

/// Bytes per second at which one thread reads a buffer of this size over and over, with the widest
/// loads that the CPU has and nothing else to do: the speed of the cache that holds it. The fastest
/// of several trials.
double read_bandwidth(size_t bytes);

}  // namespace rotrnn::cli
