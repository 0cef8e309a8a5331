#include "rotrnn/base/threads.h"

#include <thread>

#ifdef __linux__
#include <sched.h>
#endif

namespace rotrnn::kernels {

int available_threads() {
#ifdef __linux__
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) == 0) {
    const int count = CPU_COUNT(&set);
    if (count > 0) return count;
  }
#endif
  const unsigned count = std::thread::hardware_concurrency();
  return count > 0 ? static_cast<int>(count) : 1;
}

}  // namespace rotrnn::kernels
