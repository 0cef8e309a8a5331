// FFTs along time, channels in the lanes: points are [2, lanes] (re, im), one cache line with AVX2,
// so there is nothing to shuffle. Forward by decimation in frequency, inverse by decimation in
// time, both in place: spectra stay in the digit-reversed order that forward leaves, which products
// do not mind. Large blocks are done depth first, so that passes over what is beyond L2 are few.
#pragma once

#include "rotrnn/kernels/targets/common-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rotrnn::kernels::HWY_NAMESPACE {

// Points of a block whose stages are done one after the other: 16 KB with AVX2, half of L1.
constexpr size_t kFftInner = 256;

struct FftPoint {
  using V = hn::Vec<Full>;
  V re, im;

  static HWY_INLINE FftPoint load(const float* p) {
    const Full d;
    return {hn::Load(d, p), hn::Load(d, p + hn::Lanes(d))};
  }
  HWY_INLINE void store(float* p) const {
    const Full d;
    hn::Store(re, d, p);
    hn::Store(im, d, p + hn::Lanes(d));
  }
};

HWY_INLINE FftPoint operator+(const FftPoint& a, const FftPoint& b) {
  return {hn::Add(a.re, b.re), hn::Add(a.im, b.im)};
}
HWY_INLINE FftPoint operator-(const FftPoint& a, const FftPoint& b) {
  return {hn::Sub(a.re, b.re), hn::Sub(a.im, b.im)};
}
/// a + s·b.
HWY_INLINE FftPoint add_scaled(const FftPoint& a, float s, const FftPoint& b) {
  const auto scale = hn::Set(Full(), s);
  return {hn::MulAdd(scale, b.re, a.re), hn::MulAdd(scale, b.im, a.im)};
}
/// a - i·s·b forward, a + i·s·b inverse.
template <bool kInverse>
HWY_INLINE FftPoint add_turned(const FftPoint& a, float s, const FftPoint& b) {
  const auto scale = hn::Set(Full(), kInverse ? -s : s);
  return {hn::MulAdd(scale, b.im, a.re), hn::NegMulAdd(scale, b.re, a.im)};
}
/// a·w, or a·conj(w).
template <bool kConjugate>
HWY_INLINE FftPoint times(const FftPoint& a, const FftPoint::V& re, const FftPoint::V& im) {
  if constexpr (kConjugate) {
    return {hn::MulAdd(a.re, re, hn::Mul(a.im, im)), hn::MulSub(a.im, re, hn::Mul(a.re, im))};
  } else {
    return {hn::MulSub(a.re, re, hn::Mul(a.im, im)), hn::MulAdd(a.im, re, hn::Mul(a.re, im))};
  }
}

/// The r-point transform of x, in place.
template <bool kInverse>
HWY_INLINE void transform(FftPoint (&x)[2]) {
  const FftPoint a = x[0];
  x[0] = a + x[1];
  x[1] = a - x[1];
}
template <bool kInverse>
HWY_INLINE void transform(FftPoint (&x)[3]) {
  const FftPoint t = x[1] + x[2], d = x[1] - x[2], m = add_scaled(x[0], -0.5f, t);
  x[0] = x[0] + t;
  x[1] = add_turned<kInverse>(m, 0.866025404f, d);
  x[2] = add_turned<!kInverse>(m, 0.866025404f, d);
}
template <bool kInverse>
HWY_INLINE void transform(FftPoint (&x)[4]) {
  const FftPoint a = x[0] + x[2], b = x[0] - x[2], c = x[1] + x[3], d = x[1] - x[3];
  const FftPoint minus{d.im, d.re};  // ∓i·d without its sign
  x[0] = a + c;
  x[2] = a - c;
  const FftPoint low{hn::Add(b.re, minus.re), hn::Sub(b.im, minus.im)};   // b - i·d
  const FftPoint high{hn::Sub(b.re, minus.re), hn::Add(b.im, minus.im)};  // b + i·d
  x[1] = kInverse ? high : low;
  x[3] = kInverse ? low : high;
}
template <bool kInverse>
HWY_INLINE void transform(FftPoint (&x)[5]) {
  constexpr float c1 = 0.309016994f, c2 = -0.809016994f, s1 = 0.951056516f, s2 = 0.587785252f;
  const FftPoint a = x[1] + x[4], b = x[2] + x[3], c = x[1] - x[4], d = x[2] - x[3];
  const FftPoint m1 = add_scaled(add_scaled(x[0], c1, a), c2, b);
  const FftPoint m2 = add_scaled(add_scaled(x[0], c2, a), c1, b);
  x[0] = x[0] + a + b;
  x[1] = add_turned<kInverse>(add_turned<kInverse>(m1, s1, c), s2, d);
  x[4] = add_turned<!kInverse>(add_turned<!kInverse>(m1, s1, c), s2, d);
  x[2] = add_turned<!kInverse>(add_turned<kInverse>(m2, s2, c), s1, d);
  x[3] = add_turned<kInverse>(add_turned<!kInverse>(m2, s2, c), s1, d);
}

/// One stage of a block of r·step points.
template <size_t r, bool kInverse>
void fft_pass(float* data, size_t step, const float* twiddles) {
  const Full d;
  const size_t point = 2 * hn::Lanes(d), apart = step * point;
  for (size_t j = 0; j < step; ++j, data += point, twiddles += 2 * (r - 1)) {
    FftPoint x[r];
#pragma GCC unroll 8
    for (size_t q = 0; q < r; ++q) x[q] = FftPoint::load(data + q * apart);
    if (kInverse && step > 1) {
#pragma GCC unroll 8
      for (size_t q = 1; q < r; ++q) {
        x[q] = times<true>(x[q], hn::Set(d, twiddles[2 * q - 2]), hn::Set(d, twiddles[2 * q - 1]));
      }
    }
    transform<kInverse>(x);
    if (!kInverse && step > 1) {
#pragma GCC unroll 8
      for (size_t q = 1; q < r; ++q) {
        x[q] = times<false>(x[q], hn::Set(d, twiddles[2 * q - 2]), hn::Set(d, twiddles[2 * q - 1]));
      }
    }
#pragma GCC unroll 8
    for (size_t q = 0; q < r; ++q) x[q].store(data + q * apart);
  }
}

template <bool kInverse>
HWY_INLINE void fft_stage(const FftStage& s, float* data) {
  switch (s.radix) {
    case 2:
      return fft_pass<2, kInverse>(data, s.step, s.twiddles);
    case 3:
      return fft_pass<3, kInverse>(data, s.step, s.twiddles);
    case 4:
      return fft_pass<4, kInverse>(data, s.step, s.twiddles);
    default:
      return fft_pass<5, kInverse>(data, s.step, s.twiddles);
  }
}

/// All stages from the one given on, of one of its blocks.
template <bool kInverse>
void fft_block(const FftPlan& plan, size_t stage, float* data) {
  if (stage == plan.count) return;
  const FftStage& s = plan.stages[stage];
  const size_t point = 2 * hn::Lanes(Full()), size = s.radix * s.step;
  if (size > kFftInner) {
    if (!kInverse) fft_stage<kInverse>(s, data);
    for (size_t q = 0; q < s.radix; ++q) {
      fft_block<kInverse>(plan, stage + 1, data + q * s.step * point);
    }
    if (kInverse) fft_stage<kInverse>(s, data);
    return;
  }
  for (size_t i = stage; i < plan.count; ++i) {
    const FftStage& inner = plan.stages[kInverse ? plan.count - 1 - (i - stage) : i];
    const size_t block = inner.radix * inner.step;
    for (size_t at = 0; at < size; at += block) fft_stage<kInverse>(inner, data + at * point);
  }
}

inline void fft(const FftPlan& plan, float* data) {
  fft_block<false>(plan, 0, data);
}

inline void fft_inverse(const FftPlan& plan, float* data) {
  fft_block<true>(plan, 0, data);
}

inline void fft_multiply(float* data, const float* by, size_t n, bool conjugate) {
  const size_t point = 2 * hn::Lanes(Full());
  for (size_t i = 0; i < n; ++i, data += point, by += point) {
    const FftPoint a = FftPoint::load(data), b = FftPoint::load(by);
    (conjugate ? times<true>(a, b.re, b.im) : times<false>(a, b.re, b.im)).store(data);
  }
}

inline void fft_correlate(float* sum, const float* a, const float* b, size_t n) {
  const size_t point = 2 * hn::Lanes(Full());
  for (size_t i = 0; i < n; ++i, sum += point, a += point, b += point) {
    const FftPoint x = FftPoint::load(a), y = FftPoint::load(b), s = FftPoint::load(sum);
    (s + times<true>(x, y.re, y.im)).store(sum);
  }
}

/// One part (re, im) of points from rows, or back. `step`: from row to row, signed.
inline void fft_load(float* part, const float* rows, ptrdiff_t step, size_t count, size_t width,
                     float scale) {
  const Full d;
  const size_t lanes = hn::Lanes(d);
  const auto factor = hn::Set(d, scale);
  for (size_t t = 0; t < count; ++t, part += 2 * lanes, rows += step) {
    if (width >= lanes) {
      hn::Store(hn::Mul(factor, hn::LoadU(d, rows)), d, part);
      continue;
    }
    for (size_t i = 0; i < lanes; ++i) part[i] = i < width ? scale * rows[i] : 0.0f;
  }
}

inline void fft_store(const float* part, float* rows, ptrdiff_t step, size_t count, size_t width,
                      float scale, bool add) {
  const Full d;
  const size_t lanes = hn::Lanes(d);
  const auto factor = hn::Set(d, scale);
  for (size_t t = 0; t < count; ++t, part += 2 * lanes, rows += step) {
    if (width >= lanes) {
      const auto value = hn::Mul(factor, hn::Load(d, part));
      hn::StoreU(add ? hn::Add(hn::LoadU(d, rows), value) : value, d, rows);
      continue;
    }
    for (size_t i = 0; i < width; ++i) rows[i] = scale * part[i] + (add ? rows[i] : 0.0f);
  }
}

}  // namespace rotrnn::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
