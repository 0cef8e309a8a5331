#pragma once

#include <functional>

namespace rotrnn::kernels {

/// Number of CPUs this process may run on (its affinity mask), at least 1.
int available_threads();

/// Runs body(t) for t in [0, threads), each on its own thread; returns when all have. The one place
/// where threads start: OpenMP normally, std::thread where the build says so (thread sanitizer,
/// WebAssembly). The calling thread takes part as t = 0. A body must not throw.
void parallel_for(int threads, const std::function<void(int)>& body);

/// The name of the back end built in: "openmp" or "std".
const char* thread_backend();

}  // namespace rotrnn::kernels
