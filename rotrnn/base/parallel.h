#pragma once

#include <cstdint>
#include <functional>

namespace rotrnn {

/// Calls body(i) for i in [0, count) on several threads; the first error by number is thrown, so
/// that it is the same for any number of them.
void in_parallel(int64_t count, int threads, const std::function<void(int64_t)>& body);

}  // namespace rotrnn
