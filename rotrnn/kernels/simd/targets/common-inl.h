// Included once by every targets/*.cpp, each compiled with the flags of its instruction set.
// Highway's static dispatch: HWY_NAMESPACE differs per instruction set, so the functions below do
// not meet at link time. For the same reason nothing inline from the standard library is used here:
// a copy built for AVX-512 could be the one that the linker keeps.
#pragma once

#ifndef HWY_IS_DEBUG_BUILD
#define HWY_IS_DEBUG_BUILD 0  // its assertions would need Highway's shared library
#endif
#include <hwy/highway.h>
#include <type_traits>

#include "rotrnn/kernels/simd/simd.h"

HWY_BEFORE_NAMESPACE();
namespace rotrnn::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using Full = hn::ScalableTag<float>;  // all lanes
using One = hn::CappedTag<float, 1>;  // the columns that do not fill a vector

/// Calls f(tag, column) for whole vectors, then for single columns.
template <class F>
HWY_INLINE void for_columns(size_t n, const F& f) {
  const Full full;
  const size_t lanes = hn::Lanes(full);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) f(full, i);
  const One one;
  for (; i < n; ++i) f(one, i);
}

template <class Tag, class V = hn::Vec<Tag>>
HWY_INLINE void add_to(Tag tag, V v, float* p) {
  hn::StoreU(hn::Add(hn::LoadU(tag, p), v), tag, p);
}

template <class Tag, class V>
HWY_INLINE void add_double(Tag tag, V v, double* sum) {
  HWY_ALIGN float lanes[HWY_MAX_BYTES / sizeof(float)];
  hn::Store(v, tag, lanes);
  for (size_t i = 0; i < hn::Lanes(tag); ++i) sum[i] += static_cast<double>(lanes[i]);
}

/// 2^t: the nearest integer n comes from adding 1.5·2^23, which leaves it in the low bits, ready to
/// be added to the exponent; 2^(t-n) from a polynomial of degree 6 (relative error 2e-9, then
/// rounding). Clamped to normal numbers. No conversion, one FMA chain: 60% of the cost of
/// Highway's Exp.
template <class Tag, class V = hn::Vec<Tag>>
HWY_INLINE V fast_exp2(Tag tag, V t) {
  const hn::Rebind<int32_t, Tag> integer;
  t = hn::Min(hn::Max(t, hn::Set(tag, -126.0f)), hn::Set(tag, 126.0f));
  const V magic = hn::Set(tag, 12582912.0f);
  const V shifted = hn::Add(t, magic);
  const V r = hn::Sub(t, hn::Sub(shifted, magic));
  V p = hn::Set(tag, 1.53533605e-4f);
  p = hn::MulAdd(p, r, hn::Set(tag, 1.33988750e-3f));
  p = hn::MulAdd(p, r, hn::Set(tag, 9.61843692e-3f));
  p = hn::MulAdd(p, r, hn::Set(tag, 5.55033237e-2f));
  p = hn::MulAdd(p, r, hn::Set(tag, 2.40226477e-1f));
  p = hn::MulAdd(p, r, hn::Set(tag, 6.93147182e-1f));
  p = hn::MulAdd(p, r, hn::Set(tag, 1.0f));
  const auto power = hn::ShiftLeft<23>(hn::BitCast(integer, shifted));
  return hn::BitCast(tag, hn::Add(hn::BitCast(integer, p), power));
}

/// σ of x, given -x·log2(e).
template <class Tag, class V = hn::Vec<Tag>>
HWY_INLINE V sigmoid_exp2(Tag tag, V t) {
  const V one = hn::Set(tag, 1.0f);
  return hn::Div(one, hn::Add(one, fast_exp2(tag, t)));
}

constexpr float kMinusLog2E = -1.44269504088896341f;

template <class Tag, class V = hn::Vec<Tag>>
HWY_INLINE V sigmoid(Tag tag, V x) {
  return sigmoid_exp2(tag, hn::Mul(x, hn::Set(tag, kMinusLog2E)));
}

constexpr float kGeluScale = 1.5957691216057308f;  // 2·sqrt(2/π)
constexpr float kGeluCubic = 0.044715f;

/// tanh-GELU is y·σ(k(y + 0.044715·y³)): the σ, for value and derivative alike.
template <class Tag, class V = hn::Vec<Tag>>
HWY_INLINE V gelu_sigmoid(Tag tag, V y) {
  const V square = hn::Mul(y, y);
  constexpr float kScale = kMinusLog2E * kGeluScale;
  const V inner = hn::MulAdd(square, hn::Set(tag, kScale * kGeluCubic), hn::Set(tag, kScale));
  return sigmoid_exp2(tag, hn::Mul(y, inner));
}

/// d gelu / dy given σ: σ + y·σ(1-σ)·k(1 + 3·0.044715·y²).
template <class Tag, class V = hn::Vec<Tag>>
HWY_INLINE V gelu_slope(Tag tag, V y, V s) {
  const V square = hn::Mul(y, y);
  const V inner =
      hn::MulAdd(square, hn::Set(tag, 3 * kGeluScale * kGeluCubic), hn::Set(tag, kGeluScale));
  const V bell = hn::NegMulAdd(s, s, s);
  return hn::MulAdd(hn::Mul(y, bell), inner, s);
}

/// The normal distribution: Φ(y), and exp(-y²/2).
template <class V>
struct NormalPair {
  V below, bell;
};

/// Φ(-|y|) = exp(-y²/2)·t·Q(t) with t = 1/(1 + |y|/4): Q of degree 8 is the minimax polynomial of
/// relative error 6e-8 up to |y| = 14, where the exponential is at its smallest. One exponential
/// gives the value, the derivative and correct tails.
template <class Tag, class V = hn::Vec<Tag>>
HWY_INLINE NormalPair<V> normal_pair(Tag tag, V y) {
  constexpr float kHalfLog2E = 0.5f * kMinusLog2E;
  const V one = hn::Set(tag, 1.0f);
  const V bell = fast_exp2(tag, hn::Mul(hn::Mul(y, y), hn::Set(tag, kHalfLog2E)));
  const V t = hn::Div(one, hn::MulAdd(hn::Abs(y), hn::Set(tag, 0.25f), one));
  V q = hn::Set(tag, 2.572356565e-2f);
  q = hn::MulAdd(q, t, hn::Set(tag, -1.528097100e-1f));
  q = hn::MulAdd(q, t, hn::Set(tag, 2.961226618e-1f));
  q = hn::MulAdd(q, t, hn::Set(tag, -2.057842544e-1f));
  q = hn::MulAdd(q, t, hn::Set(tag, 2.017590891e-1f));
  q = hn::MulAdd(q, t, hn::Set(tag, 3.292750758e-2f));
  q = hn::MulAdd(q, t, hn::Set(tag, 1.037468036e-1f));
  q = hn::MulAdd(q, t, hn::Set(tag, 9.851682585e-2f));
  q = hn::MulAdd(q, t, hn::Set(tag, 9.979748239e-2f));
  const V tail = hn::Mul(bell, hn::Mul(t, q));
  return {hn::IfThenElse(hn::Lt(y, hn::Zero(tag)), tail, hn::Sub(one, tail)), bell};
}

constexpr float kNormalScale = 0.3989422804014327f;  // 1/sqrt(2π)

/// A curve, and its derivative.
template <Curve kCurve, class Tag, class V = hn::Vec<Tag>>
HWY_INLINE V curve_value(Tag tag, V y) {
  if constexpr (kCurve == Curve::exact_gelu) {
    return hn::Mul(y, normal_pair(tag, y).below);
  } else {
    return hn::Mul(y, gelu_sigmoid(tag, y));
  }
}

template <Curve kCurve, class Tag, class V = hn::Vec<Tag>>
HWY_INLINE void curve_both(Tag tag, V y, V& value, V& slope) {
  if constexpr (kCurve == Curve::exact_gelu) {
    const auto normal = normal_pair(tag, y);
    value = hn::Mul(y, normal.below);
    slope = hn::MulAdd(hn::Mul(y, hn::Set(tag, kNormalScale)), normal.bell, normal.below);
  } else {
    const V s = gelu_sigmoid(tag, y);
    value = hn::Mul(y, s);
    slope = gelu_slope(tag, y, s);
  }
}

}  // namespace rotrnn::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
