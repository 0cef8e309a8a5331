#pragma once

namespace rotrnn {

/// CPUs that this process may run on, by its affinity mask.
int available_threads();

}  // namespace rotrnn
