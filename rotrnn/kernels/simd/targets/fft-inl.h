// FFTs along time, channels in the lanes: points are [2, lanes] (re, im), one cache line with AVX2,
// so there is nothing to shuffle. Forward by decimation in frequency, inverse by decimation in
// time, both in place: spectra stay in the digit-reversed order that forward leaves, which products
// do not mind. Large blocks are done depth first, so that passes over what is beyond L2 are few.
#pragma once

#include "rotrnn/kernels/simd/targets/common-inl.h"

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

/// One stage of a block of r·step points, of which those from `live` on are zeros that are not
/// there.
template <size_t r, bool kInverse>
void fft_pass(float* data, size_t step, const float* twiddles, size_t live) {
  const Full d;
  const size_t point = 2 * hn::Lanes(d), apart = step * point;
  for (size_t j = 0; j < step; ++j, data += point, twiddles += 2 * (r - 1)) {
    FftPoint x[r];
#pragma GCC unroll 8
    for (size_t q = 0; q < r; ++q) {
      const bool there = kInverse || j + q * step < live;
      x[q] = there ? FftPoint::load(data + q * apart) : FftPoint{hn::Zero(d), hn::Zero(d)};
    }
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
HWY_INLINE void fft_stage(const FftStage& s, float* data, size_t live) {
  switch (s.radix) {
    case 2:
      return fft_pass<2, kInverse>(data, s.step, s.twiddles, live);
    case 3:
      return fft_pass<3, kInverse>(data, s.step, s.twiddles, live);
    case 4:
      return fft_pass<4, kInverse>(data, s.step, s.twiddles, live);
    default:
      return fft_pass<5, kInverse>(data, s.step, s.twiddles, live);
  }
}

/// All stages from the one given on, of one of its blocks, which is small; `live` of the first.
template <bool kInverse>
HWY_INLINE void fft_inner(const FftPlan& plan, size_t stage, float* data, size_t live) {
  if (stage == plan.count) return;
  const size_t point = 2 * hn::Lanes(Full());
  const size_t size = plan.stages[stage].radix * plan.stages[stage].step;
  for (size_t i = stage; i < plan.count; ++i) {
    const FftStage& s = plan.stages[kInverse ? plan.count - 1 - (i - stage) : i];
    const size_t block = s.radix * s.step;
    for (size_t at = 0; at < size; at += block) {
      fft_stage<kInverse>(s, data + at * point, i == stage ? live : block);
    }
  }
}

HWY_INLINE bool is_inner(const FftPlan& plan, size_t stage) {
  return stage == plan.count || plan.stages[stage].radix * plan.stages[stage].step <= kFftInner;
}

template <bool kInverse>
void fft_block(const FftPlan& plan, size_t stage, float* data, size_t live) {
  if (is_inner(plan, stage)) return fft_inner<kInverse>(plan, stage, data, live);
  const FftStage& s = plan.stages[stage];
  if (!kInverse) fft_stage<kInverse>(s, data, live);
  for (size_t q = 0; q < s.radix; ++q) {
    fft_block<kInverse>(plan, stage + 1, data + q * s.step * 2 * hn::Lanes(Full()), s.step);
  }
  if (kInverse) fft_stage<kInverse>(s, data, live);
}

inline void fft(const FftPlan& plan, float* data, size_t live) {
  fft_block<false>(plan, 0, data, live);
}

inline void fft_inverse(const FftPlan& plan, float* data) {
  fft_block<true>(plan, 0, data, plan.n);
}

/// There, product and back of a block: large blocks are walked through only on the way.
inline void convolve_block(const FftPlan& plan, size_t stage, float* data, const float* spectrum,
                           size_t live) {
  const size_t point = 2 * hn::Lanes(Full());
  if (!is_inner(plan, stage)) {
    const FftStage& s = plan.stages[stage];
    fft_stage<false>(s, data, live);
    for (size_t q = 0; q < s.radix; ++q) {
      const size_t at = q * s.step * point;
      convolve_block(plan, stage + 1, data + at, spectrum + at, s.step);
    }
    fft_stage<true>(s, data, 0);
    return;
  }
  const size_t size = stage == plan.count ? 1 : plan.stages[stage].radix * plan.stages[stage].step;
  fft_inner<false>(plan, stage, data, live);
  for (size_t i = 0; i < size * point; i += point) {
    const FftPoint a = FftPoint::load(data + i), b = FftPoint::load(spectrum + i);
    times<false>(a, b.re, b.im).store(data + i);
  }
  fft_inner<true>(plan, stage, data, 0);
}

inline void fft_convolve(const FftPlan& plan, float* data, const float* spectrum, size_t live) {
  convolve_block(plan, 0, data, spectrum, live);
}

inline void adjoint_block(const FftPlan& plan, size_t stage, float* g, float* x,
                          const float* spectrum, float* sum, size_t live) {
  const size_t point = 2 * hn::Lanes(Full());
  if (!is_inner(plan, stage)) {
    const FftStage& s = plan.stages[stage];
    fft_stage<false>(s, g, live);
    fft_stage<false>(s, x, live);
    for (size_t q = 0; q < s.radix; ++q) {
      const size_t at = q * s.step * point;
      adjoint_block(plan, stage + 1, g + at, x + at, spectrum + at, sum + at, s.step);
    }
    fft_stage<true>(s, g, 0);
    return;
  }
  const size_t size = stage == plan.count ? 1 : plan.stages[stage].radix * plan.stages[stage].step;
  fft_inner<false>(plan, stage, g, live);
  fft_inner<false>(plan, stage, x, live);
  for (size_t i = 0; i < size * point; i += point) {
    const FftPoint a = FftPoint::load(g + i), b = FftPoint::load(x + i);
    const FftPoint k = FftPoint::load(spectrum + i);
    (FftPoint::load(sum + i) + times<true>(a, b.re, b.im)).store(sum + i);
    times<true>(a, k.re, k.im).store(g + i);
  }
  fft_inner<true>(plan, stage, g, 0);
}

inline void fft_convolve_adjoint(const FftPlan& plan, float* g, float* x, const float* spectrum,
                                 float* sum, size_t live) {
  adjoint_block(plan, 0, g, x, spectrum, sum, live);
}

// Rows ahead of the one that is read or written: rows are far apart, which hardware does not
// follow.
constexpr ptrdiff_t kFftAhead = 16;

inline void fft_load(const FftRows& r, const float* rows, float* part, float scale) {
  const Full d;
  const size_t lanes = hn::Lanes(d);
  const auto factor = hn::Set(d, scale);
  for (size_t t = 0; t < r.count; ++t, part += 2 * lanes, rows += r.step) {
    __builtin_prefetch(rows + kFftAhead * r.step);
    float* to = part;
    for (size_t begin = 0; begin < r.width; begin += lanes, to += r.apart) {
      if (r.width - begin >= lanes) {
        hn::Store(hn::Mul(factor, hn::LoadU(d, rows + begin)), d, to);
        continue;
      }
      for (size_t i = 0; i < lanes; ++i) to[i] = begin + i < r.width ? scale * rows[begin + i] : 0;
    }
  }
}

inline void fft_store(const FftRows& r, const float* part, float* rows, float scale, bool add) {
  const Full d;
  const size_t lanes = hn::Lanes(d);
  const auto factor = hn::Set(d, scale);
  for (size_t t = 0; t < r.count; ++t, part += 2 * lanes, rows += r.step) {
    __builtin_prefetch(rows + kFftAhead * r.step, 1);
    const float* from = part;
    for (size_t begin = 0; begin < r.width; begin += lanes, from += r.apart) {
      float* to = rows + begin;
      if (r.width - begin >= lanes) {
        const auto value = hn::Mul(factor, hn::Load(d, from));
        hn::StoreU(add ? hn::Add(hn::LoadU(d, to), value) : value, d, to);
        continue;
      }
      for (size_t i = 0; i < r.width - begin; ++i) to[i] = scale * from[i] + (add ? to[i] : 0);
    }
  }
}

}  // namespace rotrnn::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
