// The scans. State stays in registers along time; kGroup vectors of states advance together, since
// one step is two dependent FMAs (8 cycles) and four chains of re and im fill both FMA ports.
#pragma once

#include "rotrnn/kernels/simd/targets/common-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rotrnn::kernels::HWY_NAMESPACE {

constexpr size_t kGroup = 4;

/// Calls f<G>(tag, column): groups of kGroup vectors, then single vectors, then single states.
template <class F>
HWY_INLINE void for_states(size_t S, const F& f) {
  const Full full;
  const size_t lanes = hn::Lanes(full);
  size_t s = 0;
  for (; s + kGroup * lanes <= S; s += kGroup * lanes) f.template operator()<kGroup>(full, s);
  for (; s + lanes <= S; s += lanes) f.template operator()<1>(full, s);
  const One one;
  for (; s < S; ++s) f.template operator()<1>(one, s);
}

template <bool kToken, bool kStore, size_t G, class Tag>
HWY_INLINE void scan_columns(Tag tag, ScanRows z, size_t rows, size_t S, size_t s,
                             ScanLambda lambda, float* state) {
  using V = hn::Vec<Tag>;
  const size_t lanes = hn::Lanes(tag);
  V re[G], im[G], lr[G], li[G];
#pragma GCC unroll 4
  for (size_t i = 0; i < G; ++i) {
    re[i] = hn::LoadU(tag, state + s + i * lanes);
    im[i] = hn::LoadU(tag, state + S + s + i * lanes);
    lr[i] = hn::LoadU(tag, lambda.re + s + i * lanes);
    li[i] = hn::LoadU(tag, lambda.im + s + i * lanes);
  }
  float* row = z.first + s;
  const float* lambda_re = lambda.re + s;
  const float* lambda_im = lambda.im + s;
  for (size_t t = 0; t < rows; ++t, row += z.step) {
#pragma GCC unroll 4
    for (size_t i = 0; i < G; ++i) {
      if constexpr (kToken) {
        lr[i] = hn::LoadU(tag, lambda_re + i * lanes);
        li[i] = hn::LoadU(tag, lambda_im + i * lanes);
      }
      const V vr = hn::LoadU(tag, row + i * lanes), vi = hn::LoadU(tag, row + S + i * lanes);
      const V next = hn::MulAdd(lr[i], re[i], hn::NegMulAdd(li[i], im[i], vr));
      im[i] = hn::MulAdd(lr[i], im[i], hn::MulAdd(li[i], re[i], vi));
      re[i] = next;
      if constexpr (kStore) {
        hn::StoreU(re[i], tag, row + i * lanes);
        hn::StoreU(im[i], tag, row + S + i * lanes);
      }
    }
    lambda_re += lambda.step;
    lambda_im += lambda.step;
  }
#pragma GCC unroll 4
  for (size_t i = 0; i < G; ++i) {
    hn::StoreU(re[i], tag, state + s + i * lanes);
    hn::StoreU(im[i], tag, state + S + s + i * lanes);
  }
}

template <bool kStore>
void scan_any(ScanRows z, size_t rows, size_t S, ScanLambda lambda, float* state) {
  if (rows == 0) return;
  for_states(S, [&]<size_t G, class Tag>(Tag tag, size_t s) {
    if (lambda.step == 0) {
      scan_columns<false, kStore, G>(tag, z, rows, S, s, lambda, state);
    } else {
      scan_columns<true, kStore, G>(tag, z, rows, S, s, lambda, state);
    }
  });
}

inline void scan(ScanRows z, size_t rows, size_t S, ScanLambda lambda, float* state) {
  scan_any<true>(z, rows, S, lambda, state);
}

inline void scan_end(ScanRows v, size_t rows, size_t S, ScanLambda lambda, float* state) {
  scan_any<false>(v, rows, S, lambda, state);
}

/// Rows whose products are summed in float before they join the others in double.
constexpr size_t kSumRows = 16;

/// Walks the rows backwards in scan order. `last` is the last row in scan order.
template <bool kToken, bool kStore, size_t G, class Tag>
HWY_INLINE void adjoint_columns(Tag tag, ScanRows g, size_t rows, size_t S, size_t s,
                                ScanLambda lambda, ScanRows z, const float* z_before, float* carry,
                                const ScanLambdaGradient& gradient) {
  using V = hn::Vec<Tag>;
  const size_t lanes = hn::Lanes(tag);
  V cr[G], ci[G], lr[G], li[G], qr[G], qi[G];
#pragma GCC unroll 4
  for (size_t i = 0; i < G; ++i) {
    cr[i] = hn::LoadU(tag, carry + s + i * lanes);
    ci[i] = hn::LoadU(tag, carry + S + s + i * lanes);
    lr[i] = hn::LoadU(tag, lambda.re + s + i * lanes);
    li[i] = hn::LoadU(tag, lambda.im + s + i * lanes);
    qr[i] = qi[i] = hn::Zero(tag);
  }
  for (size_t t = rows; t-- > 0;) {
    const ptrdiff_t index = static_cast<ptrdiff_t>(t);
    float* row = g.first + index * g.step + s;
    const float* before = nullptr;
    if constexpr (kStore) before = t > 0 ? z.first + (index - 1) * z.step + s : z_before + s;
    const ptrdiff_t at = index * lambda.step + static_cast<ptrdiff_t>(s);
#pragma GCC unroll 4
    for (size_t i = 0; i < G; ++i) {
      if constexpr (kToken) {
        lr[i] = hn::LoadU(tag, lambda.re + at + i * lanes);
        li[i] = hn::LoadU(tag, lambda.im + at + i * lanes);
      }
      const V gr = hn::Add(cr[i], hn::LoadU(tag, row + i * lanes));
      const V gi = hn::Add(ci[i], hn::LoadU(tag, row + S + i * lanes));
      cr[i] = hn::MulAdd(lr[i], gr, hn::Mul(li[i], gi));
      ci[i] = hn::NegMulAdd(li[i], gr, hn::Mul(lr[i], gi));
      if constexpr (kStore) {
        hn::StoreU(gr, tag, row + i * lanes);
        hn::StoreU(gi, tag, row + S + i * lanes);
        // The gradient of λ: g·conj(z before).
        const V zr = hn::LoadU(tag, before + i * lanes);
        const V zi = hn::LoadU(tag, before + S + i * lanes);
        if constexpr (kToken) {
          V pr = hn::MulAdd(gr, zr, hn::Mul(gi, zi));
          V pi = hn::NegMulAdd(gr, zi, hn::Mul(gi, zr));
          float* to_re = gradient.re + at + i * lanes;
          float* to_im = gradient.im + at + i * lanes;
          if (gradient.add) {
            pr = hn::Add(pr, hn::LoadU(tag, to_re));
            pi = hn::Add(pi, hn::LoadU(tag, to_im));
          }
          hn::StoreU(pr, tag, to_re);
          hn::StoreU(pi, tag, to_im);
        } else {
          qr[i] = hn::MulAdd(gr, zr, hn::MulAdd(gi, zi, qr[i]));
          qi[i] = hn::NegMulAdd(gr, zi, hn::MulAdd(gi, zr, qi[i]));
        }
      }
    }
    if constexpr (kStore && !kToken) {
      if (t % kSumRows != 0) continue;
#pragma GCC unroll 4
      for (size_t i = 0; i < G; ++i) {
        add_double(tag, qr[i], gradient.sum + s + i * lanes);
        add_double(tag, qi[i], gradient.sum + S + s + i * lanes);
        qr[i] = qi[i] = hn::Zero(tag);
      }
    }
  }
#pragma GCC unroll 4
  for (size_t i = 0; i < G; ++i) {
    hn::StoreU(cr[i], tag, carry + s + i * lanes);
    hn::StoreU(ci[i], tag, carry + S + s + i * lanes);
  }
}

inline void scan_adjoint(ScanRows g, size_t rows, size_t S, ScanLambda lambda, ScanRows z,
                         const float* z_before, float* carry, ScanLambdaGradient gradient) {
  if (rows == 0) return;
  for_states(S, [&]<size_t G, class Tag>(Tag tag, size_t s) {
    if (lambda.step == 0) {
      adjoint_columns<false, true, G>(tag, g, rows, S, s, lambda, z, z_before, carry, gradient);
    } else {
      adjoint_columns<true, true, G>(tag, g, rows, S, s, lambda, z, z_before, carry, gradient);
    }
  });
}

inline void scan_adjoint_end(ScanRows g, size_t rows, size_t S, ScanLambda lambda, float* carry) {
  if (rows == 0) return;
  for_states(S, [&]<size_t G, class Tag>(Tag tag, size_t s) {
    const ScanLambdaGradient none{};
    if (lambda.step == 0) {
      adjoint_columns<false, false, G>(tag, g, rows, S, s, lambda, {}, nullptr, carry, none);
    } else {
      adjoint_columns<true, false, G>(tag, g, rows, S, s, lambda, {}, nullptr, carry, none);
    }
  });
}

}  // namespace rotrnn::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
