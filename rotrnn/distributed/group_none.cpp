// In place of group_c10d.cpp where LibTorch was built without c10d or Gloo's headers are missing.
#include <ATen/core/Tensor.h>

#include "rotrnn/distributed/group.h"
#include "rotrnn/kernels/threads.h"

namespace rotrnn {

struct Group::Impl {};

Group::Group() = default;
Group::~Group() = default;

Group::Group(const Place& place, double, bool) {
  if (place.size > 1) {
    throw std::runtime_error(
        "this rotrnn was built without c10d, so it trains in one process only; it needs a LibTorch "
        "with c10d and the headers of Gloo");
  }
}

int Group::threads() const {
  return kernels::available_threads();
}

void Group::all_reduce(double*, size_t) {}
void Group::all_reduce(at::Tensor&) {}
void Group::broadcast(void*, size_t) {}
void Group::broadcast(at::Tensor&) {}
std::string Group::broadcast(const std::string& text) {
  return text;
}
void Group::barrier(bool) {}
void Group::fail(const std::string&) {}

}  // namespace rotrnn
