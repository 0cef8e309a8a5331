// Channel systems. States stay in registers along the rows of a tile, one vector of channels at a
// time. A step of a state is two dependent FMAs (8 cycles) in 6 of them (forward) or 14 (adjoint):
// two FMA ports are full with 3 or 4 states at once forward, with 2 in the adjoint, where some sums
// then live in L1.
#pragma once

#include "rotrnn/kernels/simd/targets/common-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rotrnn::kernels::HWY_NAMESPACE {

constexpr size_t kScanStates = 4;
constexpr size_t kAdjointStates = 2;

/// Calls f<K>(n, column): K states from the n-th, of the vector of channels at `column`.
template <size_t kMost, class F>
HWY_INLINE void for_channel_states(const ChannelTile& tile, const F& f) {
  const size_t lanes = hn::Lanes(Full());
  for (size_t column = 0; column < tile.width; column += lanes) {
    size_t n = 0;
    if constexpr (kMost >= 4) {
      for (; n + 4 <= tile.N; n += 4) f.template operator()<4>(n, column);
    }
    if constexpr (kMost >= 2) {
      for (; n + 2 <= tile.N; n += 2) f.template operator()<2>(n, column);
    }
    for (; n < tile.N; ++n) f.template operator()<1>(n, column);
  }
}

/// The first row of a walk, in floats from the tile's, and the step to the next.
HWY_INLINE size_t first_row(const ChannelTile& tile) {
  return tile.backwards ? (tile.rows - 1) * kChannels : 0;
}

HWY_INLINE ptrdiff_t row_step(const ChannelTile& tile) {
  const auto step = static_cast<ptrdiff_t>(kChannels);
  return tile.backwards ? -step : step;
}

template <bool kLag, size_t K>
HWY_INLINE void scan_channels(const ChannelTile& tile, size_t n, size_t column, float* y,
                              float* state) {
  using V = hn::Vec<Full>;
  const Full d;
  const size_t at = n * 2 * kChannels + column;
  V re[K], im[K], lr[K], li[K], cr[K], ci[K];
#pragma GCC unroll 4
  for (size_t k = 0; k < K; ++k) {
    const size_t r = at + k * 2 * kChannels, i = r + kChannels;
    re[k] = hn::Load(d, state + r), im[k] = hn::Load(d, state + i);
    lr[k] = hn::Load(d, tile.lambda + r), li[k] = hn::Load(d, tile.lambda + i);
    cr[k] = hn::Load(d, tile.c + r), ci[k] = hn::Load(d, tile.c + i);
  }
  const float* u = tile.u + first_row(tile) + column;
  float* out = y + first_row(tile) + column;
  const ptrdiff_t step = row_step(tile);
  for (size_t t = 0; t < tile.rows; ++t, u += step, out += step) {
    const V here = hn::Load(d, u);
    V sum = hn::Load(d, out), minus = hn::Zero(d);  // two chains, half as long
#pragma GCC unroll 4
    for (size_t k = 0; k < K; ++k) {
      const V was_re = re[k], was_im = im[k];
      re[k] = hn::MulAdd(lr[k], was_re, hn::NegMulAdd(li[k], was_im, here));
      im[k] = hn::MulAdd(lr[k], was_im, hn::Mul(li[k], was_re));
      sum = hn::MulAdd(cr[k], kLag ? was_re : re[k], sum);
      minus = k == 0 ? hn::Mul(ci[k], kLag ? was_im : im[k])
                     : hn::MulAdd(ci[k], kLag ? was_im : im[k], minus);
    }
    hn::Store(hn::Sub(sum, minus), d, out);
  }
#pragma GCC unroll 4
  for (size_t k = 0; k < K; ++k) {
    const size_t r = at + k * 2 * kChannels;
    hn::Store(re[k], d, state + r);
    hn::Store(im[k], d, state + r + kChannels);
  }
}

/// One row, as streams bring them: y stays in registers over all states instead, two chains each
/// for its parts, since every load of a parameter serves one multiplication.
inline void scan_row(const ChannelTile& tile, float* y, float* state) {
  using V = hn::Vec<Full>;
  const Full d;
  const size_t lanes = hn::Lanes(d);
  for (size_t column = 0; column < tile.width; column += lanes) {
    const V u = hn::Load(d, tile.u + column);
    V plus[2] = {hn::Load(d, y + column), hn::Zero(d)}, minus[2] = {hn::Zero(d), hn::Zero(d)};
    const auto step = [&](size_t n, size_t k) HWY_ATTR {
      const size_t r = n * 2 * kChannels + column, i = r + kChannels;
      const V was_re = hn::Load(d, state + r), was_im = hn::Load(d, state + i);
      const V lr = hn::Load(d, tile.lambda + r), li = hn::Load(d, tile.lambda + i);
      const V re = hn::MulAdd(lr, was_re, hn::NegMulAdd(li, was_im, u));
      const V im = hn::MulAdd(lr, was_im, hn::Mul(li, was_re));
      hn::Store(re, d, state + r);
      hn::Store(im, d, state + i);
      plus[k] = hn::MulAdd(hn::Load(d, tile.c + r), tile.lag ? was_re : re, plus[k]);
      minus[k] = hn::MulAdd(hn::Load(d, tile.c + i), tile.lag ? was_im : im, minus[k]);
    };
    size_t n = 0;
    for (; n + 2 <= tile.N; n += 2) {
      step(n, 0);
      step(n + 1, 1);
    }
    if (n < tile.N) step(n, 0);
    hn::Store(hn::Sub(hn::Add(plus[0], plus[1]), hn::Add(minus[0], minus[1])), d, y + column);
  }
}

inline void channel_scan(const ChannelTile& tile, float* y, float* state) {
  if (tile.rows == 1) {
    scan_row(tile, y, state);
    return;
  }
  for_channel_states<kScanStates>(tile, [&]<size_t K>(size_t n, size_t column) {
    if (tile.lag) {
      scan_channels<true, K>(tile, n, column, y, state);
    } else {
      scan_channels<false, K>(tile, n, column, y, state);
    }
  });
}

/// Re Σ_n q_n·x_n of a vector of channels. Four chains: a load of each port a cycle is the bound.
HWY_INLINE hn::Vec<Full> rank_sum(size_t N, size_t column, const float* q, const float* state) {
  const Full d;
  auto plus = hn::Zero(d), minus = hn::Zero(d), more_plus = hn::Zero(d), more_minus = hn::Zero(d);
  const size_t end = N * 2 * kChannels;
  size_t r = column;
  for (; r + 2 * kChannels < end; r += 4 * kChannels) {
    const size_t i = r + kChannels, s = i + kChannels, j = s + kChannels;
    plus = hn::MulAdd(hn::Load(d, q + r), hn::Load(d, state + r), plus);
    minus = hn::MulAdd(hn::Load(d, q + i), hn::Load(d, state + i), minus);
    more_plus = hn::MulAdd(hn::Load(d, q + s), hn::Load(d, state + s), more_plus);
    more_minus = hn::MulAdd(hn::Load(d, q + j), hn::Load(d, state + j), more_minus);
  }
  if (r < end) {
    const size_t i = r + kChannels;
    plus = hn::MulAdd(hn::Load(d, q + r), hn::Load(d, state + r), plus);
    minus = hn::MulAdd(hn::Load(d, q + i), hn::Load(d, state + i), minus);
  }
  return hn::Sub(hn::Add(plus, more_plus), hn::Add(minus, more_minus));
}

/// A row of a vector of channels; returns y's part. `joined` goes in as the sum of the states
/// before and, if kNext, out as that of the states after: one walk over them for both.
template <bool kLag, bool kNext>
HWY_INLINE hn::Vec<Full> rank_row(const ChannelTile& tile, const ChannelRank& rank, size_t column,
                                  hn::Vec<Full> u, hn::Vec<Full>& joined, float* state) {
  using V = hn::Vec<Full>;
  const Full d;
  const V s = joined;
  V plus = hn::Zero(d), minus = hn::Zero(d), next_plus = hn::Zero(d), next_minus = hn::Zero(d);
  for (size_t n = 0; n < tile.N; ++n) {
    const size_t r = n * 2 * kChannels + column, i = r + kChannels;
    const V was_re = hn::Load(d, state + r), was_im = hn::Load(d, state + i);
    const V lr = hn::Load(d, tile.lambda + r), li = hn::Load(d, tile.lambda + i);
    V re = hn::MulAdd(hn::Load(d, rank.p + r), s, hn::Mul(hn::Load(d, rank.b + r), u));
    V im = hn::MulAdd(hn::Load(d, rank.p + i), s, hn::Mul(hn::Load(d, rank.b + i), u));
    re = hn::MulAdd(lr, was_re, hn::NegMulAdd(li, was_im, re));
    im = hn::MulAdd(lr, was_im, hn::MulAdd(li, was_re, im));
    hn::Store(re, d, state + r);
    hn::Store(im, d, state + i);
    plus = hn::MulAdd(hn::Load(d, tile.c + r), kLag ? was_re : re, plus);
    minus = hn::MulAdd(hn::Load(d, tile.c + i), kLag ? was_im : im, minus);
    if constexpr (kNext) {
      next_plus = hn::MulAdd(hn::Load(d, rank.q + r), re, next_plus);
      next_minus = hn::MulAdd(hn::Load(d, rank.q + i), im, next_minus);
    }
  }
  joined = hn::Sub(next_plus, next_minus);
  return hn::Sub(plus, minus);
}

/// Every row needs all states of the row before, so they cannot stay in registers: they and their
/// parameters (24 KB for 32 states) are in L1.
template <bool kLag>
HWY_INLINE void rank_scan(const ChannelTile& tile, const ChannelRank& rank, float* y,
                          float* state) {
  const Full d;
  const size_t lanes = hn::Lanes(d);
  for (size_t column = 0; column < tile.width; column += lanes) {
    const float* u = tile.u + first_row(tile) + column;
    float* out = y + first_row(tile) + column;
    const ptrdiff_t step = row_step(tile);
    auto joined = rank_sum(tile.N, column, rank.q, state);
    for (size_t t = 0; t < tile.rows; ++t, u += step, out += step) {
      const auto here = hn::Load(d, u);
      const auto read = t + 1 < tile.rows
                            ? rank_row<kLag, true>(tile, rank, column, here, joined, state)
                            : rank_row<kLag, false>(tile, rank, column, here, joined, state);
      hn::Store(hn::Add(hn::Load(d, out), read), d, out);
    }
  }
}

inline void channel_rank_scan(const ChannelTile& tile, const ChannelRank& rank, float* y,
                              float* state) {
  if (tile.lag) {
    rank_scan<true>(tile, rank, y, state);
  } else {
    rank_scan<false>(tile, rank, y, state);
  }
}

template <bool kLag, size_t K>
HWY_INLINE void adjoint_channels(const ChannelTile& tile, size_t n, size_t column, const float* dy,
                                 float* du, float* state, double* sums) {
  using V = hn::Vec<Full>;
  const Full d;
  const size_t at = n * 2 * kChannels + column, wide = n * 4 * kChannels + column;
  V hr[K], hi[K], pr[K], pi[K], lr[K], li[K], cr[K], ci[K];
  V uhr[K], uhi[K], upr[K], upi[K];
#pragma GCC unroll 4
  for (size_t k = 0; k < K; ++k) {
    const size_t r = at + k * 2 * kChannels, i = r + kChannels;
    const float* s = state + wide + k * 4 * kChannels;
    hr[k] = hn::Load(d, s), hi[k] = hn::Load(d, s + kChannels);
    pr[k] = hn::Load(d, s + 2 * kChannels), pi[k] = hn::Load(d, s + 3 * kChannels);
    lr[k] = hn::Load(d, tile.lambda + r), li[k] = hn::Load(d, tile.lambda + i);
    cr[k] = hn::Load(d, tile.c + r), ci[k] = hn::Load(d, tile.c + i);
    uhr[k] = uhi[k] = upr[k] = upi[k] = hn::Zero(d);
  }
  const size_t first = first_row(tile) + column;
  const float* u = tile.u + first;
  const ptrdiff_t step = row_step(tile);
  dy += first, du += first;
  for (size_t t = 0; t < tile.rows; ++t, u += step, dy += step, du += step) {
    const V here = hn::Load(d, u), gradient = hn::Load(d, dy);
    V sum = hn::Load(d, du);
    const auto read = [&](size_t k) HWY_ATTR {
      sum = hn::MulAdd(cr[k], hr[k], hn::MulAdd(ci[k], hi[k], sum));
      uhr[k] = hn::MulAdd(here, hr[k], uhr[k]);
      uhi[k] = hn::MulAdd(here, hi[k], uhi[k]);
      upr[k] = hn::MulAdd(here, pr[k], upr[k]);
      upi[k] = hn::MulAdd(here, pi[k], upi[k]);
    };
#pragma GCC unroll 4
    for (size_t k = 0; k < K; ++k) {
      if constexpr (kLag) read(k);
      const V p = hn::MulAdd(lr[k], pr[k], hn::MulAdd(li[k], pi[k], hr[k]));
      pi[k] = hn::MulAdd(lr[k], pi[k], hn::NegMulAdd(li[k], pr[k], hi[k]));
      pr[k] = p;
      const V h = hn::MulAdd(lr[k], hr[k], hn::MulAdd(li[k], hi[k], gradient));
      hi[k] = hn::MulSub(lr[k], hi[k], hn::Mul(li[k], hr[k]));
      hr[k] = h;
      if constexpr (!kLag) read(k);
    }
    hn::Store(sum, d, du);
  }
#pragma GCC unroll 4
  for (size_t k = 0; k < K; ++k) {
    const size_t to = wide + k * 4 * kChannels;
    hn::Store(hr[k], d, state + to);
    hn::Store(hi[k], d, state + to + kChannels);
    hn::Store(pr[k], d, state + to + 2 * kChannels);
    hn::Store(pi[k], d, state + to + 3 * kChannels);
    add_double(d, uhr[k], sums + to);
    add_double(d, uhi[k], sums + to + kChannels);
    add_double(d, upr[k], sums + to + 2 * kChannels);
    add_double(d, upi[k], sums + to + 3 * kChannels);
  }
}

inline void channel_adjoint(const ChannelTile& tile, const float* dy, float* du, float* state,
                            double* sums) {
  for_channel_states<kAdjointStates>(tile, [&]<size_t K>(size_t n, size_t column) {
    if (tile.lag) {
      adjoint_channels<true, K>(tile, n, column, dy, du, state, sums);
    } else {
      adjoint_channels<false, K>(tile, n, column, dy, du, state, sums);
    }
  });
}

}  // namespace rotrnn::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
