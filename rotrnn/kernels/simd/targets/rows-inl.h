// Kernels over the rows and columns of a tile: norms, activation, gates, residual, their gradients.
// Rows outside, columns inside: memory is walked in order; column sums are kept in L1.
#pragma once

#include "rotrnn/kernels/simd/targets/common-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rotrnn::kernels::HWY_NAMESPACE {

template <class Tag, class V = hn::Vec<Tag>>
HWY_INLINE V load_or_one(Tag tag, const float* p, size_t i) {
  return p == nullptr ? hn::Set(tag, 1.0f) : hn::LoadU(tag, p + i);
}

template <class Tag, class V = hn::Vec<Tag>>
HWY_INLINE V load_or_zero(Tag tag, const float* p, size_t i) {
  return p == nullptr ? hn::Zero(tag) : hn::LoadU(tag, p + i);
}

inline void affine(const float* x, size_t ldx, const float* a, const float* c, float* u, size_t ldu,
                   size_t rows, size_t n) {
  for (size_t r = 0; r < rows; ++r) {
    const float* from = x + r * ldx;
    float* to = u + r * ldu;
    for_columns(n, [=](auto tag, size_t i) HWY_ATTR {
      const auto v =
          hn::MulAdd(hn::LoadU(tag, from + i), hn::LoadU(tag, a + i), hn::LoadU(tag, c + i));
      hn::StoreU(v, tag, to + i);
    });
  }
}

inline float row_sum(const float* x, size_t n) {
  const Full d;
  const size_t lanes = hn::Lanes(d);
  auto sum = hn::Zero(d);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) sum = hn::Add(sum, hn::LoadU(d, x + i));
  float total = hn::GetLane(hn::SumOfLanes(d, sum));
  for (; i < n; ++i) total += x[i];
  return total;
}

struct RowMoments {
  float mean, rstd;
};

/// Two passes over the row (it is in L1): the sum, then the squares about the mean.
inline RowMoments row_moments(const float* x, size_t n, float eps) {
  const float mean = row_sum(x, n) / static_cast<float>(n);
  const Full d;
  const size_t lanes = hn::Lanes(d);
  const auto m = hn::Set(d, mean);
  auto sum = hn::Zero(d);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto v = hn::Sub(hn::LoadU(d, x + i), m);
    sum = hn::MulAdd(v, v, sum);
  }
  float total = hn::GetLane(hn::SumOfLanes(d, sum));
  for (; i < n; ++i) total += (x[i] - mean) * (x[i] - mean);
  const One one;
  const auto root = hn::Sqrt(hn::Set(one, total / static_cast<float>(n) + eps));
  return {mean, 1.0f / hn::GetLane(root)};
}

inline void layer_norm(const float* x, size_t ldx, const float* w, const float* b, float eps,
                       float* u, size_t ldu, size_t rows, size_t n) {
  for (size_t r = 0; r < rows; ++r) {
    const float* from = x + r * ldx;
    float* to = u + r * ldu;
    const RowMoments m = row_moments(from, n, eps);
    for_columns(n, [=](auto tag, size_t i) HWY_ATTR {
      const auto centred = hn::Sub(hn::LoadU(tag, from + i), hn::Set(tag, m.mean));
      const auto scaled = hn::Mul(centred, hn::Set(tag, m.rstd));
      hn::StoreU(hn::MulAdd(scaled, hn::LoadU(tag, w + i), hn::LoadU(tag, b + i)), tag, to + i);
    });
  }
}

inline void add_rows(float* x, size_t ldx, const float* row, size_t rows, size_t n) {
  for (size_t r = 0; r < rows; ++r) {
    float* to = x + r * ldx;
    for_columns(n,
                [=](auto tag, size_t i) HWY_ATTR { add_to(tag, hn::LoadU(tag, row + i), to + i); });
  }
}

inline void column_sum(const float* x, size_t ldx, size_t rows, size_t n, double* sum) {
  for_columns(n, [=](auto tag, size_t i) HWY_ATTR {
    auto total = hn::Zero(tag);
    for (size_t r = 0; r < rows; ++r) total = hn::Add(total, hn::LoadU(tag, x + r * ldx + i));
    HWY_ALIGN float lanes[HWY_MAX_BYTES / sizeof(float)];
    hn::Store(total, tag, lanes);
    for (size_t j = 0; j < hn::Lanes(tag); ++j) sum[i + j] += static_cast<double>(lanes[j]);
  });
}

/// Adds one row to the sums of its tile; the first row sets the shift.
template <class Tag, class V>
HWY_INLINE void add_statistics(Tag tag, const TileStatistics& s, bool first, size_t i, V v) {
  if (first) {
    hn::StoreU(v, tag, s.shift + i);
    hn::StoreU(hn::Zero(tag), tag, s.sum + i);
    hn::StoreU(hn::Zero(tag), tag, s.square + i);
  } else {
    const V about = hn::Sub(v, hn::LoadU(tag, s.shift + i));
    add_to(tag, about, s.sum + i);
    hn::StoreU(hn::MulAdd(about, about, hn::LoadU(tag, s.square + i)), tag, s.square + i);
  }
}

inline void column_statistics(const float* x, size_t ldx, size_t rows, size_t n, TileStatistics s) {
  for (size_t r = 0; r < rows; ++r) {
    const float* row = x + r * ldx;
    for_columns(n, [&](auto tag, size_t i)
                       HWY_ATTR { add_statistics(tag, s, r == 0, i, hn::LoadU(tag, row + i)); });
  }
}

/// y += skip⊙u + e;  h = mask⊙f(y).
template <Curve kCurve>
void preactivate(float* y, size_t ldy, const float* u, size_t ldu, const float* skip,
                 const float* e, const float* mask, float* h, size_t ldh, size_t rows, size_t n) {
  for (size_t r = 0; r < rows; ++r) {
    float* yr = y + r * ldy;
    const float* ur = u + r * ldu;
    float* hr = h + r * ldh;
    for_columns(n, [=](auto tag, size_t i) HWY_ATTR {
      auto v =
          hn::MulAdd(load_or_zero(tag, skip, i), hn::LoadU(tag, ur + i), hn::LoadU(tag, yr + i));
      if (e != nullptr) v = hn::Add(v, hn::LoadU(tag, e + i));
      hn::StoreU(v, tag, yr + i);
      auto out = curve_value<kCurve>(tag, v);
      if (mask != nullptr) out = hn::Mul(out, hn::LoadU(tag, mask + i));
      hn::StoreU(out, tag, hr + i);
    });
  }
}

/// q += q_bias;  s = σ(s + s_bias);  out = x + mask⊙q⊙s. Optional: x.
inline void gate(float* q, size_t ldq, const float* q_bias, float* s, size_t lds,
                 const float* s_bias, const float* mask, const float* x, size_t ldx, float* out,
                 size_t ldo, size_t rows, size_t n, const TileStatistics* statistics) {
  for (size_t r = 0; r < rows; ++r) {
    float* qr = q + r * ldq;
    float* sr = s + r * lds;
    const float* xr = x == nullptr ? nullptr : x + r * ldx;
    float* to = out + r * ldo;
    for_columns(n, [&](auto tag, size_t i) HWY_ATTR {
      auto value = hn::LoadU(tag, qr + i);
      if (q_bias != nullptr) {
        value = hn::Add(value, hn::LoadU(tag, q_bias + i));
        hn::StoreU(value, tag, qr + i);
      }
      const auto open = sigmoid(tag, hn::Add(hn::LoadU(tag, sr + i), load_or_zero(tag, s_bias, i)));
      hn::StoreU(open, tag, sr + i);
      if (mask != nullptr) value = hn::Mul(value, hn::LoadU(tag, mask + i));
      const auto result = hn::MulAdd(value, open, load_or_zero(tag, xr, i));
      hn::StoreU(result, tag, to + i);
      if (statistics != nullptr) add_statistics(tag, *statistics, r == 0, i, result);
    });
  }
}

/// out = h + x. Optional: x.
inline void residual(const float* h, size_t ldh, const float* x, size_t ldx, float* out, size_t ldo,
                     size_t rows, size_t n, const TileStatistics* statistics) {
  for (size_t r = 0; r < rows; ++r) {
    const float* xr = x == nullptr ? nullptr : x + r * ldx;
    for_columns(n, [&](auto tag, size_t i) HWY_ATTR {
      const auto v = hn::Add(hn::LoadU(tag, h + r * ldh + i), load_or_zero(tag, xr, i));
      hn::StoreU(v, tag, out + r * ldo + i);
      if (statistics != nullptr) add_statistics(tag, *statistics, r == 0, i, v);
    });
  }
}

/// out = x + mask⊙(y + skip⊙u + e). Optional: skip, e, mask, x. out may be y.
inline void project(const float* y, size_t ldy, const float* u, size_t ldu, const float* skip,
                    const float* e, const float* mask, const float* x, size_t ldx, float* out,
                    size_t ldo, size_t rows, size_t n, const TileStatistics* statistics) {
  for (size_t r = 0; r < rows; ++r) {
    const float* yr = y + r * ldy;
    const float* ur = u + r * ldu;
    const float* xr = x == nullptr ? nullptr : x + r * ldx;
    float* to = out + r * ldo;
    for_columns(n, [&](auto tag, size_t i) HWY_ATTR {
      auto v =
          hn::MulAdd(load_or_zero(tag, skip, i), hn::LoadU(tag, ur + i), hn::LoadU(tag, yr + i));
      if (e != nullptr) v = hn::Add(v, hn::LoadU(tag, e + i));
      if (mask != nullptr) v = hn::Mul(v, hn::LoadU(tag, mask + i));
      if (xr != nullptr) v = hn::Add(v, hn::LoadU(tag, xr + i));
      hn::StoreU(v, tag, to + i);
      if (statistics != nullptr) add_statistics(tag, *statistics, r == 0, i, v);
    });
  }
}

/// Of o = mask⊙(y + skip⊙u + e): dy = mask⊙dout, and the sums of dy⊙u and dy. Optional: mask.
inline void project_backward(const float* dout, size_t ldo, const float* mask, const float* u,
                             size_t ldu, float* dy, size_t lddy, float* skip_sum, float* e_sum,
                             size_t rows, size_t n) {
  for (size_t r = 0; r < rows; ++r) {
    const float* from = dout + r * ldo;
    const float* ur = u + r * ldu;
    float* to = dy + r * lddy;
    for_columns(n, [=](auto tag, size_t i) HWY_ATTR {
      auto g = hn::LoadU(tag, from + i);
      if (mask != nullptr) g = hn::Mul(g, hn::LoadU(tag, mask + i));
      hn::StoreU(g, tag, to + i);
      hn::StoreU(hn::MulAdd(g, hn::LoadU(tag, ur + i), hn::LoadU(tag, skip_sum + i)), tag,
                 skip_sum + i);
      add_to(tag, g, e_sum + i);
    });
  }
}

/// h = mask⊙f(y), d = mask⊙f'(y): one exponential for both.
template <Curve kCurve>
void curve_pair(const float* y, size_t ldy, const float* mask, float* h, size_t ldh, float* d,
                size_t ldd, size_t rows, size_t n) {
  for (size_t r = 0; r < rows; ++r) {
    const float* yr = y + r * ldy;
    float* hr = h + r * ldh;
    float* dr = d + r * ldd;
    for_columns(n, [=](auto tag, size_t i) HWY_ATTR {
      auto value = hn::Zero(tag), slope = value;
      curve_both<kCurve>(tag, hn::LoadU(tag, yr + i), value, slope);
      if (mask != nullptr) {
        const auto m = hn::LoadU(tag, mask + i);
        value = hn::Mul(value, m);
        slope = hn::Mul(slope, m);
      }
      hn::StoreU(value, tag, hr + i);
      hn::StoreU(slope, tag, dr + i);
    });
  }
}

/// Of o = mask⊙q⊙s: ds = do⊙q⊙s(1-s) (before σ), dq = do⊙s (optional), and their column sums.
inline void gate_backward(const float* dout, size_t ldo, const float* mask, const float* q,
                          size_t ldq, const float* s, size_t lds, float* dq, size_t lddq, float* ds,
                          size_t ldds, float* dq_sum, float* ds_sum, size_t rows, size_t n) {
  for (size_t r = 0; r < rows; ++r) {
    const float* from = dout + r * ldo;
    const float* qr = q + r * ldq;
    const float* sr = s + r * lds;
    float* dqr = dq == nullptr ? nullptr : dq + r * lddq;
    float* dsr = ds + r * ldds;
    for_columns(n, [=](auto tag, size_t i) HWY_ATTR {
      auto g = hn::LoadU(tag, from + i);
      if (mask != nullptr) g = hn::Mul(g, hn::LoadU(tag, mask + i));
      const auto open = hn::LoadU(tag, sr + i);
      const auto direct = hn::Mul(g, open);
      const auto bell = hn::NegMulAdd(direct, open, direct);  // do·s(1-s)
      const auto gated = hn::Mul(bell, hn::LoadU(tag, qr + i));
      hn::StoreU(gated, tag, dsr + i);
      add_to(tag, gated, ds_sum + i);
      if (dqr != nullptr) {
        hn::StoreU(direct, tag, dqr + i);
        add_to(tag, direct, dq_sum + i);
      }
    });
  }
}

/// dy = d⊙(dh [+ mask⊙dout⊙s if direct_h]) [+ mask⊙dout⊙s if direct_y], in place of dh, and the
/// sums of dy⊙u and dy.
inline void preactivate_backward(float* dh, size_t lddh, const float* d, size_t ldd,
                                 const float* dout, size_t ldo, const float* mask, const float* s,
                                 size_t lds, bool direct_h, bool direct_y, const float* u,
                                 size_t ldu, float* skip_sum, float* e_sum, size_t rows, size_t n) {
  for (size_t r = 0; r < rows; ++r) {
    float* row = dh + r * lddh;
    const float* dr = d + r * ldd;
    const float* from = dout + r * ldo;
    const float* sr = s == nullptr ? nullptr : s + r * lds;
    const float* ur = u + r * ldu;
    for_columns(n, [=](auto tag, size_t i) HWY_ATTR {
      auto g = hn::LoadU(tag, row + i);
      const auto slope = hn::LoadU(tag, dr + i);
      if (direct_h || direct_y) {
        auto direct = hn::Mul(hn::LoadU(tag, from + i), hn::LoadU(tag, sr + i));
        if (mask != nullptr) direct = hn::Mul(direct, hn::LoadU(tag, mask + i));
        g = direct_h ? hn::Mul(slope, hn::Add(g, direct)) : hn::MulAdd(slope, g, direct);
      } else {
        g = hn::Mul(slope, g);
      }
      hn::StoreU(g, tag, row + i);
      hn::StoreU(hn::MulAdd(g, hn::LoadU(tag, ur + i), hn::LoadU(tag, skip_sum + i)), tag,
                 skip_sum + i);
      if (e_sum != nullptr) add_to(tag, g, e_sum + i);
    });
  }
}

/// du += skip⊙dy;  sum += du, product += du⊙x̂;  dx = dout + scale⊙du. Optional: mean and rstd (no
/// norm: no sums, scale 1), dout.
inline void batch_norm_backward(float* du, size_t lddu, const float* dy, size_t lddy,
                                const float* skip, const float* x, size_t ldx, const float* mean,
                                const float* rstd, const float* scale, const float* dout,
                                size_t ldo, float* dx, size_t lddx, float* sum, float* product,
                                size_t rows, size_t n) {
  for (size_t r = 0; r < rows; ++r) {
    const float* dur = du + r * lddu;
    const float* dyr = dy == nullptr ? nullptr : dy + r * lddy;
    const float* xr = x + r * ldx;
    const float* from = dout == nullptr ? nullptr : dout + r * ldo;
    float* to = dx + r * lddx;
    for_columns(n, [=](auto tag, size_t i) HWY_ATTR {
      auto g = hn::LoadU(tag, dur + i);
      if (dyr != nullptr && skip != nullptr) {
        g = hn::MulAdd(hn::LoadU(tag, skip + i), hn::LoadU(tag, dyr + i), g);
      }
      if (mean != nullptr) {
        const auto hat = hn::Mul(hn::Sub(hn::LoadU(tag, xr + i), hn::LoadU(tag, mean + i)),
                                 hn::LoadU(tag, rstd + i));
        add_to(tag, g, sum + i);
        hn::StoreU(hn::MulAdd(g, hat, hn::LoadU(tag, product + i)), tag, product + i);
        g = hn::Mul(g, hn::LoadU(tag, scale + i));
      }
      if (from != nullptr) g = hn::Add(g, hn::LoadU(tag, from + i));
      hn::StoreU(g, tag, to + i);
    });
  }
}

/// The same for layer norm: dx = dout + rstd·(w⊙du - mean(w⊙du) - x̂·mean(w⊙du⊙x̂)).
inline void layer_norm_backward(float* du, size_t lddu, const float* dy, size_t lddy,
                                const float* skip, const float* x, size_t ldx, const float* w,
                                float eps, const float* dout, size_t ldo, float* dx, size_t lddx,
                                float* sum, float* product, size_t rows, size_t n) {
  const Full full;
  const One one;
  for (size_t r = 0; r < rows; ++r) {
    float* dur = du + r * lddu;
    const float* dyr = dy == nullptr ? nullptr : dy + r * lddy;
    const float* xr = x + r * ldx;
    const float* from = dout == nullptr ? nullptr : dout + r * ldo;
    float* to = dx + r * lddx;
    const RowMoments m = row_moments(xr, n, eps);
    auto plain_v = hn::Zero(full), with_v = hn::Zero(full);
    auto plain_1 = hn::Zero(one), with_1 = hn::Zero(one);
    for_columns(n, [&](auto tag, size_t i) HWY_ATTR {
      auto g = hn::LoadU(tag, dur + i);
      if (dyr != nullptr && skip != nullptr) {
        g = hn::MulAdd(hn::LoadU(tag, skip + i), hn::LoadU(tag, dyr + i), g);
      }
      const auto hat =
          hn::Mul(hn::Sub(hn::LoadU(tag, xr + i), hn::Set(tag, m.mean)), hn::Set(tag, m.rstd));
      add_to(tag, g, sum + i);
      hn::StoreU(hn::MulAdd(g, hat, hn::LoadU(tag, product + i)), tag, product + i);
      g = hn::Mul(g, hn::LoadU(tag, w + i));
      hn::StoreU(g, tag, dur + i);
      if constexpr (std::is_same_v<decltype(tag), Full>) {
        plain_v = hn::Add(plain_v, g);
        with_v = hn::MulAdd(g, hat, with_v);
      } else {
        plain_1 = hn::Add(plain_1, g);
        with_1 = hn::MulAdd(g, hat, with_1);
      }
    });
    const float scale = 1.0f / static_cast<float>(n);
    const float plain = scale * (hn::GetLane(hn::SumOfLanes(full, plain_v)) + hn::GetLane(plain_1));
    const float with = scale * (hn::GetLane(hn::SumOfLanes(full, with_v)) + hn::GetLane(with_1));
    for_columns(n, [=](auto tag, size_t i) HWY_ATTR {
      const auto rstd = hn::Set(tag, m.rstd);
      const auto hat = hn::Mul(hn::Sub(hn::LoadU(tag, xr + i), hn::Set(tag, m.mean)), rstd);
      auto g = hn::Sub(hn::LoadU(tag, dur + i), hn::Set(tag, plain));
      g = hn::Mul(rstd, hn::NegMulAdd(hat, hn::Set(tag, with), g));
      if (from != nullptr) g = hn::Add(g, hn::LoadU(tag, from + i));
      hn::StoreU(g, tag, to + i);
    });
  }
}

/// out = [scale⊙]partial + q⊙x + s: the part of a batch norm's gradient that waits for its sums.
inline void finish(const float* partial, size_t ldp, const float* scale, const float* x, size_t ldx,
                   const float* q, const float* s, float* out, size_t ldo, size_t rows, size_t n) {
  for (size_t r = 0; r < rows; ++r) {
    const float* from = partial + r * ldp;
    const float* xr = x + r * ldx;
    float* to = out + r * ldo;
    for_columns(n, [=](auto tag, size_t i) HWY_ATTR {
      const auto rest =
          hn::MulAdd(hn::LoadU(tag, q + i), hn::LoadU(tag, xr + i), hn::LoadU(tag, s + i));
      const auto g = hn::LoadU(tag, from + i);
      const auto v =
          scale == nullptr ? hn::Add(g, rest) : hn::MulAdd(g, hn::LoadU(tag, scale + i), rest);
      hn::StoreU(v, tag, to + i);
    });
  }
}

}  // namespace rotrnn::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
