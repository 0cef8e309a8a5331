#include "rotrnn/kernels/recurrence/fft.h"

#include <cmath>
#include <map>
#include <memory>
#include <mutex>
#include <numbers>
#include <vector>

namespace rotrnn::kernels {
namespace {

/// Odd radices first, so that the small blocks are of 4; one 2 before those.
std::vector<size_t> radices_of(size_t n) {
  std::vector<size_t> radices;
  for (const size_t r : {5, 3}) {
    for (; n % r == 0; n /= r) radices.push_back(r);
  }
  size_t twos = 0;
  for (; n % 2 == 0; n /= 2) ++twos;
  if (twos % 2 == 1) radices.push_back(2);
  radices.insert(radices.end(), twos / 2, 4);
  return radices;
}

/// A stage is a pass over the points, bound by loads and stores; a radix of 5 by arithmetic.
double cost_of(size_t n) {
  double cost = 1;  // what is done besides
  for (const size_t r : radices_of(n)) cost += r == 5 ? 1.3 : 1.0;
  return static_cast<double>(n) * cost;
}

/// A plan with its memory.
struct StoredPlan {
  FftPlan plan;
  std::vector<FftStage> stages;
  std::vector<std::vector<float>> twiddles;
};

std::unique_ptr<StoredPlan> make_plan(size_t n) {
  auto made = std::make_unique<StoredPlan>();
  size_t block = n;
  for (const size_t r : radices_of(n)) {
    const size_t step = block / r;
    std::vector<float> twiddles;
    twiddles.reserve(2 * (r - 1) * step);
    for (size_t j = 0; j < step; ++j) {
      for (size_t q = 1; q < r; ++q) {
        const double angle =
            -2 * std::numbers::pi * static_cast<double>(q * j) / static_cast<double>(block);
        twiddles.push_back(static_cast<float>(std::cos(angle)));
        twiddles.push_back(static_cast<float>(std::sin(angle)));
      }
    }
    made->twiddles.push_back(std::move(twiddles));
    made->stages.push_back({r, step, made->twiddles.back().data()});
    block = step;
  }
  made->plan = {n, made->stages.size(), made->stages.data()};
  return made;
}

}  // namespace

size_t fft_size(size_t least) {
  size_t best = 0;
  for (const size_t odd : {1, 3, 5, 9, 15, 25, 27}) {
    size_t n = odd;
    while (n < least) n *= 2;
    if (best == 0 || cost_of(n) < cost_of(best)) best = n;
  }
  return best;
}

const FftPlan& fft_plan(size_t n) {
  static std::mutex mutex;
  static std::map<size_t, std::unique_ptr<StoredPlan>> plans;
  const std::lock_guard lock(mutex);
  std::unique_ptr<StoredPlan>& plan = plans[n];
  if (!plan) plan = make_plan(n);
  return plan->plan;
}

}  // namespace rotrnn::kernels
