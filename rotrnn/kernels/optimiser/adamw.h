#pragma once

#include <cstddef>
#include <cstdint>

namespace rotrnn::kernels {

/// AdamW (Loshchilov & Hutter 2019) over one flat array:
///   w ← w(1 - lr·decay);  m ← β1 m + (1-β1) g;  v ← β2 v + (1-β2) g²
///   w ← w - lr/(1-β1^t) · m / (sqrt(v)/sqrt(1-β2^t) + eps)
struct AdamW {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, decay = 0;
};

/// One step; `step` counts from 1.
void adamw(const AdamW& settings, int64_t step, float* w, const float* g, float* m, float* v,
           size_t n, int threads);

}  // namespace rotrnn::kernels
