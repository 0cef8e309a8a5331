// Banks of rotations on raw samples: vectors lie across bands, and a group of them, of one channel
// or of several, advances together. One step of a vector is two dependent FMAs (8 cycles) in six of
// them, so four vectors fill two ports. State and λ stay in registers along the samples of a tile.
#pragma once

#include "rotrnn/kernels/simd/targets/common-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rotrnn::kernels::HWY_NAMESPACE {

/// Vectors that advance together; backward needs seven registers for each.
constexpr size_t kRotateVectors = 4;
constexpr size_t kRotateAdjointVectors = HWY_MAX_BYTES >= 64 ? 4 : 2;

/// Calls f<G>(at): G vectors of the planes from `at`, the rest that fills no group together.
template <size_t kMost, class F>
HWY_INLINE void for_band_vectors(size_t plane, const F& f) {
  const size_t lanes = hn::Lanes(Full());
  size_t at = 0;
  for (; at + kMost * lanes <= plane; at += kMost * lanes) f.template operator()<kMost>(at);
  const size_t rest = (plane - at) / lanes;
  if constexpr (kMost >= 4) {
    if (rest == 3) return f.template operator()<3>(at);
    if (rest == 2) return f.template operator()<2>(at);
  }
  if (rest == 1) f.template operator()<1>(at);
}

template <bool kKeep, size_t G>
HWY_INLINE void rotate_bands(const RotationTile& tile, size_t at, float* state, float* kept) {
  using V = hn::Vec<Full>;
  const Full d;
  const size_t lanes = hn::Lanes(d), plane = tile.channels * tile.bands;
  V re[G], im[G], sum[G], lr[G], li[G];
  const float* x[G];
#pragma GCC unroll 4
  for (size_t i = 0; i < G; ++i) {
    const size_t p = at + i * lanes, channel = p / tile.bands, band = p % tile.bands;
    re[i] = hn::Load(d, state + p);
    im[i] = hn::Load(d, state + plane + p);
    sum[i] = hn::Load(d, state + 2 * plane + p);
    lr[i] = hn::Load(d, tile.lambda_re + band);
    li[i] = hn::Load(d, tile.lambda_im + band);
    x[i] = tile.x + channel;
  }
  const size_t step = tile.channels;
  for (size_t t = 0, s = 0; t < tile.rows; ++t, s += step) {
#pragma GCC unroll 4
    for (size_t i = 0; i < G; ++i) {
      const V was = re[i];
      re[i] = hn::MulAdd(lr[i], was, hn::NegMulAdd(li[i], im[i], hn::Set(d, x[i][s])));
      im[i] = hn::MulAdd(lr[i], im[i], hn::Mul(li[i], was));
      sum[i] = hn::MulAdd(im[i], im[i], hn::MulAdd(re[i], re[i], sum[i]));
      if constexpr (kKeep) {
        hn::Store(re[i], d, kept + t * 2 * plane + at + i * lanes);
        hn::Store(im[i], d, kept + t * 2 * plane + plane + at + i * lanes);
      }
    }
  }
#pragma GCC unroll 4
  for (size_t i = 0; i < G; ++i) {
    const size_t p = at + i * lanes;
    hn::Store(re[i], d, state + p);
    hn::Store(im[i], d, state + plane + p);
    hn::Store(sum[i], d, state + 2 * plane + p);
  }
}

inline void rotate(const RotationTile& tile, float* state, float* kept) {
  for_band_vectors<kRotateVectors>(tile.channels * tile.bands, [&]<size_t G>(size_t at) {
    if (kept == nullptr) {
      rotate_bands<false, G>(tile, at, state, nullptr);
    } else {
      rotate_bands<true, G>(tile, at, state, kept);
    }
  });
}

/// Rows whose products are summed in float before they join the others in double.
constexpr size_t kRotateSumRows = 16;

template <bool kInput, size_t G>
HWY_INLINE void rotate_adjoint_bands(const RotationTile& tile, size_t at, const float* w,
                                     const float* before, const float* g, float* carry,
                                     double* sums, float* dx) {
  using V = hn::Vec<Full>;
  const Full d;
  const size_t lanes = hn::Lanes(d), plane = tile.channels * tile.bands;
  V cr[G], ci[G], qr[G], qi[G], lr[G], li[G], slope[G];
#pragma GCC unroll 4
  for (size_t i = 0; i < G; ++i) {
    const size_t p = at + i * lanes, band = p % tile.bands;
    cr[i] = hn::Load(d, carry + p);
    ci[i] = hn::Load(d, carry + plane + p);
    lr[i] = hn::Load(d, tile.lambda_re + band);
    li[i] = hn::Load(d, tile.lambda_im + band);
    slope[i] = hn::Load(d, g + p);
    qr[i] = qi[i] = hn::Zero(d);
  }
  for (size_t t = tile.rows; t-- > 0;) {
    const float* row = w + t * 2 * plane + at;
    const float* last = (t > 0 ? w + (t - 1) * 2 * plane : before) + at;
#pragma GCC unroll 4
    for (size_t i = 0; i < G; ++i) {
      const V hr = hn::MulAdd(slope[i], hn::Load(d, row + i * lanes), cr[i]);
      const V hi = hn::MulAdd(slope[i], hn::Load(d, row + plane + i * lanes), ci[i]);
      const V br = hn::Load(d, last + i * lanes), bi = hn::Load(d, last + plane + i * lanes);
      qr[i] = hn::MulAdd(hr, br, hn::MulAdd(hi, bi, qr[i]));
      qi[i] = hn::MulAdd(hi, br, hn::NegMulAdd(hr, bi, qi[i]));
      cr[i] = hn::MulAdd(lr[i], hr, hn::Mul(li[i], hi));
      ci[i] = hn::NegMulAdd(li[i], hr, hn::Mul(lr[i], hi));
      if constexpr (kInput) {
        const size_t channel = (at + i * lanes) / tile.bands;
        dx[t * tile.channels + channel] += hn::GetLane(hn::SumOfLanes(d, hr));
      }
    }
    if (t % kRotateSumRows != 0) continue;
#pragma GCC unroll 4
    for (size_t i = 0; i < G; ++i) {
      add_double(d, qr[i], sums + at + i * lanes);
      add_double(d, qi[i], sums + plane + at + i * lanes);
      qr[i] = qi[i] = hn::Zero(d);
    }
  }
#pragma GCC unroll 4
  for (size_t i = 0; i < G; ++i) {
    hn::Store(cr[i], d, carry + at + i * lanes);
    hn::Store(ci[i], d, carry + plane + at + i * lanes);
  }
}

inline void rotate_adjoint(const RotationTile& tile, const float* w, const float* before,
                           const float* g, float* carry, double* sums, float* dx) {
  for_band_vectors<kRotateAdjointVectors>(tile.channels * tile.bands, [&]<size_t G>(size_t at) {
    if (dx == nullptr) {
      rotate_adjoint_bands<false, G>(tile, at, w, before, g, carry, sums, nullptr);
    } else {
      rotate_adjoint_bands<true, G>(tile, at, w, before, g, carry, sums, dx);
    }
  });
}

/// log of positive normal numbers, within an ulp: x = m·2^e with m in [2/3, 4/3), and log(m) by a
/// polynomial in m - 1. What is not finite gives NaN.
template <class Tag, class V = hn::Vec<Tag>>
HWY_INLINE V natural_log(Tag tag, V x) {
  const hn::Rebind<int32_t, Tag> integer;
  const auto bits = hn::BitCast(integer, x);
  const auto two_thirds = hn::BitCast(integer, hn::Set(tag, 0.666666667f));
  const auto exponent = hn::ShiftRight<23>(hn::Sub(bits, two_thirds));
  const V m =
      hn::Sub(hn::BitCast(tag, hn::Sub(bits, hn::ShiftLeft<23>(exponent))), hn::Set(tag, 1.0f));
  const V s = hn::Mul(m, m);
  V r = hn::Set(tag, -0.130310059f), t = hn::Set(tag, 0.140869141f);
  r = hn::MulAdd(r, s, hn::Set(tag, -0.121483512f));
  t = hn::MulAdd(t, s, hn::Set(tag, 0.139814854f));
  r = hn::MulAdd(r, s, hn::Set(tag, -0.166846126f));
  t = hn::MulAdd(t, s, hn::Set(tag, 0.200120345f));
  r = hn::MulAdd(r, s, hn::Set(tag, -0.249996200f));
  r = hn::MulAdd(t, m, r);
  r = hn::MulAdd(r, m, hn::Set(tag, 0.333331972f));
  r = hn::MulAdd(r, m, hn::Set(tag, -0.5f));
  r = hn::MulAdd(r, s, m);
  r = hn::MulAdd(hn::ConvertTo(tag, exponent), hn::Set(tag, 0.693147182f), r);
  return hn::Add(r, hn::Sub(x, x));
}

inline void rotation_token(const float* sum, const float* xi2, float share, float floor,
                           const float* mean, const float* inverse, float* out, size_t n) {
  const Full d;
  const size_t lanes = hn::Lanes(d);
  for (size_t k = 0; k < n; k += lanes) {
    const auto scale = hn::Mul(hn::Load(d, xi2 + k), hn::Set(d, share));
    const auto power = hn::MulAdd(hn::Load(d, sum + k), scale, hn::Set(d, floor));
    const auto value =
        hn::Mul(hn::Sub(natural_log(d, power), hn::Load(d, mean + k)), hn::Load(d, inverse + k));
    if (k + lanes <= n) {
      hn::StoreU(value, d, out + k);
      continue;
    }
    HWY_ALIGN float rest[HWY_MAX_BYTES / sizeof(float)];
    hn::Store(value, d, rest);
    for (size_t i = 0; k + i < n; ++i) out[k + i] = rest[i];
  }
}

}  // namespace rotrnn::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
