#include "rotrnn/kernels/optimiser/adamw.h"

#include <cmath>

#include "rotrnn/base/threads.h"
#include "rotrnn/kernels/simd/simd.h"

namespace rotrnn::kernels {

void adamw(const AdamW& s, int64_t step, float* w, const float* g, float* m, float* v, size_t n,
           int threads) {
  const auto f = [](double x) { return static_cast<float>(x); };
  const auto t = static_cast<double>(step);
  const double scale = s.lr / (1 - std::pow(s.beta1, t));
  const double root = 1 / std::sqrt(1 - std::pow(s.beta2, t));
  // Below 64K elements (all in L2) starting threads costs more than the work.
  const int workers = n < 65536 ? 1 : threads;
  parallel_for(workers, [&](int thread) {
    const auto index = static_cast<size_t>(thread), many = static_cast<size_t>(workers);
    const size_t begin = n * index / many / 16 * 16;
    const size_t end = index + 1 == many ? n : n * (index + 1) / many / 16 * 16;
    table().adamw(w + begin, g + begin, m + begin, v + begin, end - begin, f(1 - s.lr * s.decay),
                  f(s.beta1), f(s.beta2), f(scale), f(root), f(s.eps));
  });
}

}  // namespace rotrnn::kernels
