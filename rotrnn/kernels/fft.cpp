#include "rotrnn/kernels/fft.h"

#include <cmath>
#include <numbers>
#include <vector>

namespace rotrnn::kernels {
namespace {

/// Odd radices first, so that the small blocks are of 4; empty when other primes are left.
std::vector<size_t> radices_of(size_t n) {
  std::vector<size_t> radices;
  for (const size_t r : {5, 3, 4, 2}) {
    for (; n % r == 0; n /= r) radices.push_back(r);
  }
  // The one 2 before the 4s.
  if (!radices.empty() && radices.back() == 2) {
    radices.pop_back();
    radices.insert(radices.begin(), 2);
  }
  return n == 1 ? radices : std::vector<size_t>{};
}

/// A stage is a pass over the points, bound by loads and stores; a radix of 5 by arithmetic.
double cost_of(size_t n, const std::vector<size_t>& radices) {
  double cost = 0;
  for (const size_t r : radices) cost += r == 5 ? 1.3 : 1.0;
  return static_cast<double>(n) * (cost + 1);  // and what is done besides
}

}  // namespace

size_t fft_size(size_t least) {
  if (least <= 1) return 1;
  size_t best = 0;
  double lowest = 0;
  for (size_t n = least;; ++n) {
    const std::vector<size_t> radices = radices_of(n);
    if (radices.empty()) continue;
    const double cost = cost_of(n, radices);
    if (best == 0 || cost < lowest) {
      best = n;
      lowest = cost;
    }
    if ((n & (n - 1)) == 0) return best;  // beyond a power of two nothing is gained
  }
}

FftPlan make_fft_plan(size_t n, Arena& arena) {
  const std::vector<size_t> radices = radices_of(n);
  auto* stages = arena.take<FftStage>(radices.size());
  size_t block = n;
  for (size_t i = 0; i < radices.size(); ++i) {
    const size_t r = radices[i], step = block / r;
    auto* twiddles = arena.take<float>(2 * (r - 1) * step);
    stages[i] = {r, step, twiddles};
    for (size_t j = 0; j < step; ++j) {
      for (size_t q = 1; q < r; ++q) {
        const double angle =
            -2 * std::numbers::pi * static_cast<double>(q * j % block) / static_cast<double>(block);
        *twiddles++ = static_cast<float>(std::cos(angle));
        *twiddles++ = static_cast<float>(std::sin(angle));
      }
    }
    block = step;
  }
  return {n, radices.size(), stages};
}

}  // namespace rotrnn::kernels
