#include <omp.h>

#include "rotrnn/base/subnormals.h"
#include "rotrnn/base/threads.h"

namespace rotrnn::kernels {

void parallel_for(int threads, const std::function<void(int)>& body) {
  if (threads <= 1) {
    const SubnormalsAreZero zero;
    body(0);
    return;
  }
  // OpenMP may give fewer threads than asked for (nested regions, limits): the stride covers that.
#pragma omp parallel num_threads(threads)
  {
    const SubnormalsAreZero zero;
    for (int t = omp_get_thread_num(); t < threads; t += omp_get_num_threads()) body(t);
  }
}

const char* thread_backend() {
  return "openmp";
}

}  // namespace rotrnn::kernels
