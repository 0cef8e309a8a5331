#pragma once

#include <functional>

namespace rotrnn::kernels {

/// Number of CPUs this process may run on (its affinity mask), at least 1.
int available_threads();

/// Runs body(t) for t in [0, threads), body(0) on the calling thread and the others on further
/// threads as far as there are any; returns when all have. The one place where threads start:
/// OpenMP in the program, a pool of std::thread in the runtime, the Python module and under the
/// thread sanitizer. Bodies must not wait for each other, for they may run one after the other: the
/// pool serves one caller, others (also a body that calls this) do their work themselves. A body
/// must not throw. Numbers below the normal range are zero in it (subnormals.h).
void parallel_for(int threads, const std::function<void(int)>& body);

/// The name of the back end built in: "openmp" or "std".
const char* thread_backend();

}  // namespace rotrnn::kernels
