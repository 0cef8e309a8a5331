// Products of panels in double: C += sign·AᵀB with A and B [K, double_panel]. Both factors are
// packed alike, so a symmetric update packs its rows once. The micro-kernel keeps kDoubleRows × 2
// vectors of C in registers: 16 or 8 independent chains on two ports of latency 4.
#pragma once

#include "rotrnn/kernels/simd/targets/common-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rotrnn::kernels::HWY_NAMESPACE {

using DoubleVector = hn::ScalableTag<double>;

constexpr size_t kDoublePanel = 2 * hn::MaxLanes(DoubleVector());
constexpr size_t kDoubleRows = kDoublePanel < 4 ? kDoublePanel : kDoublePanel < 16 ? 4 : 8;

inline size_t double_panel() {  // not HWY_INLINE: the table calls it, without the target's flags
  return 2 * hn::Lanes(DoubleVector());
}

HWY_INLINE void double_micro(double* HWY_RESTRICT c, size_t ldc, const double* HWY_RESTRICT a,
                             const double* HWY_RESTRICT b, size_t K, double sign) {
  using V = hn::Vec<DoubleVector>;
  const DoubleVector d;
  const size_t lanes = hn::Lanes(d), panel = 2 * lanes;
  V c0[kDoubleRows], c1[kDoubleRows];
#pragma GCC unroll 8
  for (size_t i = 0; i < kDoubleRows; ++i) c0[i] = c1[i] = hn::Zero(d);
  for (size_t k = 0; k < K; ++k, a += panel, b += panel) {
    const V b0 = hn::LoadU(d, b), b1 = hn::LoadU(d, b + lanes);
#pragma GCC unroll 8
    for (size_t i = 0; i < kDoubleRows; ++i) {
      const V x = hn::Set(d, a[i]);
      c0[i] = hn::MulAdd(x, b0, c0[i]);
      c1[i] = hn::MulAdd(x, b1, c1[i]);
    }
  }
  const V scale = hn::Set(d, sign);
#pragma GCC unroll 8
  for (size_t i = 0; i < kDoubleRows; ++i) {
    double* row = c + i * ldc;
    hn::StoreU(hn::MulAdd(scale, c0[i], hn::LoadU(d, row)), d, row);
    hn::StoreU(hn::MulAdd(scale, c1[i], hn::LoadU(d, row + lanes)), d, row + lanes);
  }
}

inline void add_product(double* c, size_t ldc, const double* a, const double* b, size_t K,
                        size_t rows, size_t columns, double sign) {
  const size_t panel = double_panel();
  HWY_ALIGN double edge[kDoubleRows * kDoublePanel];
  for (size_t i = 0; i < rows; i += kDoubleRows) {
    const size_t r = rows - i < kDoubleRows ? rows - i : kDoubleRows;
    if (r == kDoubleRows && columns == panel) {
      double_micro(c + i * ldc, ldc, a + i, b, K, sign);
      continue;
    }
    for (size_t j = 0; j < kDoubleRows * panel; ++j) edge[j] = 0;
    double_micro(edge, panel, a + i, b, K, sign);
    for (size_t y = 0; y < r; ++y) {
      for (size_t x = 0; x < columns; ++x) c[(i + y) * ldc + x] += edge[y * panel + x];
    }
  }
}

}  // namespace rotrnn::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
