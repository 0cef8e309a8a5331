#include <thread>
#include <vector>

#include "rotrnn/kernels/threads.h"

namespace rotrnn::kernels {

void parallel_for(int threads, const std::function<void(int)>& body) {
  std::vector<std::thread> others;
  for (int t = 1; t < threads; ++t) others.emplace_back([&body, t] { body(t); });
  body(0);
  for (std::thread& other : others) other.join();
}

const char* thread_backend() {
  return "std";
}

}  // namespace rotrnn::kernels
