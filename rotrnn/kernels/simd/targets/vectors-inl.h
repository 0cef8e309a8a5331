// Kernels over plain vectors.
#pragma once

#include "rotrnn/kernels/simd/targets/common-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rotrnn::kernels::HWY_NAMESPACE {

inline double fma_loop(size_t times) {
  const Full d;
  constexpr size_t kChains = 12;  // latency 4 on two ports needs 8; 12 as in the GEMM
  hn::Vec<Full> sum[kChains];
#pragma GCC unroll 16
  for (size_t i = 0; i < kChains; ++i) sum[i] = hn::Set(d, static_cast<float>(i));
  const auto scale = hn::Set(d, 0.999f), shift = hn::Set(d, 1e-3f);
  for (size_t t = 0; t < times; ++t) {
#pragma GCC unroll 16
    for (size_t i = 0; i < kChains; ++i) sum[i] = hn::MulAdd(sum[i], scale, shift);
  }
  auto total = hn::Zero(d);
#pragma GCC unroll 16
  for (size_t i = 0; i < kChains; ++i) total = hn::Add(total, sum[i]);
  const float used = hn::GetLane(hn::SumOfLanes(d, total));
  const double done =
      2.0 * static_cast<double>(kChains * hn::Lanes(d)) * static_cast<double>(times);
  return used == 0.125f ? 0.0 : done;  // the sum must be needed, or the loop is gone
}

inline void axpy(float* y, const float* x, float scale, size_t n) {
  for_columns(n, [=](auto tag, size_t i) HWY_ATTR {
    const auto v = hn::MulAdd(hn::Set(tag, scale), hn::LoadU(tag, x + i), hn::LoadU(tag, y + i));
    hn::StoreU(v, tag, y + i);
  });
}

template <Curve kCurve>
void curve(const float* x, float* y, size_t n) {
  for_columns(n, [=](auto tag, size_t i) HWY_ATTR {
    hn::StoreU(curve_value<kCurve>(tag, hn::LoadU(tag, x + i)), tag, y + i);
  });
}

template <Curve kCurve>
void curve_backward(const float* x, const float* dy, float* dx, size_t n) {
  for_columns(n, [=](auto tag, size_t i) HWY_ATTR {
    auto value = hn::Zero(tag), slope = value;
    curve_both<kCurve>(tag, hn::LoadU(tag, x + i), value, slope);
    hn::StoreU(hn::Mul(slope, hn::LoadU(tag, dy + i)), tag, dx + i);
  });
}

/// w ← w·decay - step·m/(sqrt(v)·root_scale + eps), after the moments; adamw.h has the equations.
inline void adamw(float* w, const float* g, float* m, float* v, size_t n, float decay, float beta1,
                  float beta2, float step, float root_scale, float eps) {
  for_columns(n, [=](auto tag, size_t i) HWY_ATTR {
    const auto gradient = hn::LoadU(tag, g + i);
    auto mean = hn::LoadU(tag, m + i), square = hn::LoadU(tag, v + i);
    mean = hn::MulAdd(hn::Set(tag, 1.0f - beta1), hn::Sub(gradient, mean), mean);
    square = hn::MulAdd(hn::Mul(gradient, gradient), hn::Set(tag, 1.0f - beta2),
                        hn::Mul(square, hn::Set(tag, beta2)));
    hn::StoreU(mean, tag, m + i);
    hn::StoreU(square, tag, v + i);
    const auto root = hn::MulAdd(hn::Sqrt(square), hn::Set(tag, root_scale), hn::Set(tag, eps));
    const auto change = hn::Div(hn::Mul(hn::Set(tag, step), mean), root);
    hn::StoreU(hn::MulSub(hn::LoadU(tag, w + i), hn::Set(tag, decay), change), tag, w + i);
  });
}

}  // namespace rotrnn::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
