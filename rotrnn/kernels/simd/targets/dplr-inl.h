// The sums of S4's kernel, in double: frequencies in the lanes, so that what belongs to a state is
// the same for all of them. One division for a state and frequency; the sums of up to kDplrColumns
// columns stay in registers along the states.
#pragma once

#include "rotrnn/kernels/simd/targets/common-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rotrnn::kernels::HWY_NAMESPACE {

using FullDouble = hn::ScalableTag<double>;

// Two sums for a column, beside w and what is made of it: 16 registers hold those of 5 and 3.
constexpr size_t kDplrColumns = HWY_MAX_BYTES >= 64 ? 8 : 5;
constexpr size_t kDplrGradientColumns = HWY_MAX_BYTES >= 64 ? 8 : 3;

struct DplrFrequency {
  using V = hn::Vec<FullDouble>;
  V sine, cosine;         // 2s, c
  V cosine2, sine2, mix;  // c², 4s², 4sc

  HWY_INLINE DplrFrequency(const DplrTile& tile, size_t j) {
    const FullDouble d;
    const V s = hn::Load(d, tile.sine + j);
    cosine = hn::Load(d, tile.cosine + j);
    sine = hn::Add(s, s);
    cosine2 = hn::Mul(cosine, cosine);
    sine2 = hn::Mul(sine, sine);
    mix = hn::Mul(hn::Add(sine, sine), cosine);
  }

  /// w = 1/(c²m - 4s² - 4isc·e).
  HWY_INLINE void weight(V m, V e, V& re, V& im) const {
    const V real = hn::MulSub(cosine2, m, sine2), minus_imaginary = hn::Mul(mix, e);
    const V norm = hn::MulAdd(real, real, hn::Mul(minus_imaginary, minus_imaginary));
    const V inverse = hn::Div(hn::Set(FullDouble(), 1.0), norm);
    re = hn::Mul(real, inverse);
    im = hn::Mul(minus_imaginary, inverse);
  }
};

template <size_t K>
void dplr_sums_of(const DplrTile& tile, size_t column, double* r) {
  using V = hn::Vec<FullDouble>;
  const FullDouble d;
  const size_t width = 2 + 2 * tile.columns;
  for (size_t j = 0; j < tile.count; j += hn::Lanes(d)) {
    const DplrFrequency f(tile, j);
    V re[K], im[K];
#pragma GCC unroll 8
    for (size_t k = 0; k < K; ++k) re[k] = im[k] = hn::Zero(d);
    const double* term = tile.terms;
    for (size_t n = 0; n < tile.n; ++n, term += width) {
      V wr, wi;
      f.weight(hn::Set(d, term[0]), hn::Set(d, term[1]), wr, wi);
      const V xr = hn::Mul(f.sine, wr), xi = hn::Mul(f.sine, wi);
      const V yr = hn::Mul(f.cosine, wr), yi = hn::Mul(f.cosine, wi);
      const double* ab = term + 2 + 2 * column;
#pragma GCC unroll 8
      for (size_t k = 0; k < K; ++k) {
        const V a = hn::Set(d, ab[2 * k]), b = hn::Set(d, ab[2 * k + 1]);
        re[k] = hn::NegMulAdd(a, xi, hn::NegMulAdd(b, yr, re[k]));
        im[k] = hn::MulAdd(a, xr, hn::NegMulAdd(b, yi, im[k]));
      }
    }
#pragma GCC unroll 8
    for (size_t k = 0; k < K; ++k) {
      double* out = r + (column + k) * 2 * kDplrTile + j;
      hn::Store(re[k], d, out);
      hn::Store(im[k], d, out + kDplrTile);
    }
  }
}

template <size_t K>
void dplr_gradient_of(const DplrTile& tile, size_t column, const double* g, double* out) {
  using V = hn::Vec<FullDouble>;
  const FullDouble d;
  const size_t width = 2 + 2 * tile.columns;
  const double* term = tile.terms;
  for (size_t n = 0; n < tile.n; ++n, term += width, out += width) {
    const V m = hn::Set(d, term[0]), e = hn::Set(d, term[1]);
    const double* ab = term + 2 + 2 * column;
    V da[K], db[K], dm = hn::Zero(d), de = hn::Zero(d);
#pragma GCC unroll 8
    for (size_t k = 0; k < K; ++k) da[k] = db[k] = hn::Zero(d);
    for (size_t j = 0; j < tile.count; j += hn::Lanes(d)) {
      const DplrFrequency f(tile, j);
      V wr, wi;
      f.weight(m, e, wr, wi);
      const V xr = hn::Mul(f.sine, wr), xi = hn::Mul(f.sine, wi);
      const V yr = hn::Mul(f.cosine, wr), yi = hn::Mul(f.cosine, wi);
      V ar = hn::Zero(d), ai = hn::Zero(d), br = hn::Zero(d), bi = hn::Zero(d);  // Σ a·g, Σ b·g
#pragma GCC unroll 8
      for (size_t k = 0; k < K; ++k) {
        const double* in = g + (column + k) * 2 * kDplrTile + j;
        const V gr = hn::Load(d, in), gi = hn::Load(d, in + kDplrTile);
        da[k] = hn::NegMulAdd(gr, xi, hn::MulAdd(gi, xr, da[k]));
        db[k] = hn::NegMulAdd(gr, yr, hn::NegMulAdd(gi, yi, db[k]));
        const V a = hn::Set(d, ab[2 * k]), b = hn::Set(d, ab[2 * k + 1]);
        ar = hn::MulAdd(a, gr, ar);
        ai = hn::MulAdd(a, gi, ai);
        br = hn::MulAdd(b, gr, br);
        bi = hn::MulAdd(b, gi, bi);
      }
      // Of w, then of 1/w: -g·conj(w²).
      const V gr = hn::MulSub(f.sine, ai, hn::Mul(f.cosine, br));
      const V gi = hn::Neg(hn::MulAdd(f.sine, ar, hn::Mul(f.cosine, bi)));
      const V square = hn::MulSub(wr, wr, hn::Mul(wi, wi)), cross = hn::Mul(hn::Add(wr, wr), wi);
      dm = hn::NegMulAdd(f.cosine2, hn::MulAdd(gr, square, hn::Mul(gi, cross)), dm);
      de = hn::MulAdd(f.mix, hn::MulSub(gi, square, hn::Mul(gr, cross)), de);
    }
    out[0] += hn::GetLane(hn::SumOfLanes(d, dm));
    out[1] += hn::GetLane(hn::SumOfLanes(d, de));
#pragma GCC unroll 8
    for (size_t k = 0; k < K; ++k) {
      out[2 + 2 * (column + k)] += hn::GetLane(hn::SumOfLanes(d, da[k]));
      out[3 + 2 * (column + k)] += hn::GetLane(hn::SumOfLanes(d, db[k]));
    }
  }
}

/// Calls f<K>(column) for groups of at most kMost columns, about equal.
template <size_t kMost, class F>
HWY_INLINE void for_dplr_columns(size_t columns, const F& f) {
  const size_t groups = (columns + kMost - 1) / kMost;
  for (size_t i = 0, column = 0; i < groups; ++i) {
    const size_t count = (columns - column) / (groups - i);
    const auto call = [&]<size_t K>() {
      if constexpr (K <= kMost) f.template operator()<K>(column);
    };
    switch (count) {
      case 1:
        call.template operator()<1>();
        break;
      case 2:
        call.template operator()<2>();
        break;
      case 3:
        call.template operator()<3>();
        break;
      case 4:
        call.template operator()<4>();
        break;
      case 5:
        call.template operator()<5>();
        break;
      case 6:
        call.template operator()<6>();
        break;
      case 7:
        call.template operator()<7>();
        break;
      default:
        call.template operator()<8>();
        break;
    }
    column += count;
  }
}

inline void dplr_sums(const DplrTile& tile, double* r) {
  for_dplr_columns<kDplrColumns>(
      tile.columns, [&]<size_t K>(size_t column) { dplr_sums_of<K>(tile, column, r); });
}

inline void dplr_gradient(const DplrTile& tile, const double* g, double* out) {
  for_dplr_columns<kDplrGradientColumns>(
      tile.columns, [&]<size_t K>(size_t column) { dplr_gradient_of<K>(tile, column, g, out); });
}

}  // namespace rotrnn::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
