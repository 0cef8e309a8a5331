#include "rotrnn/base/parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <vector>

#include "rotrnn/base/threads.h"

namespace rotrnn {

void in_parallel(int64_t count, int threads, const std::function<void(int64_t)>& body) {
  std::vector<std::exception_ptr> errors(static_cast<std::size_t>(count));
  std::atomic<int64_t> next{0};
  kernels::parallel_for(std::max(1, threads), [&](int) {
    for (int64_t i; (i = next++) < count;) {
      try {
        body(i);
      } catch (...) {
        errors[static_cast<std::size_t>(i)] = std::current_exception();
      }
    }
  });
  for (const auto& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

}  // namespace rotrnn
