// The packed tile GEMM. A micro-kernel keeps kMR × 2 vectors of C in registers and takes, per step
// of k, two vectors of B and kMR broadcasts of A: with 16 registers 6 × 2 leaves room for B and one
// broadcast, and its 12 independent chains cover two FMA ports of latency 4. With 32 registers
// 12 × 2. The panel of B (K × 2 vectors, 16 KB at K = 256 on AVX2) stays in L1 while all rows of
// the tile pass; A streams from L2 at 4 bytes per cycle.
#pragma once

#include "rotrnn/kernels/simd/targets/common-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rotrnn::kernels::HWY_NAMESPACE {

constexpr size_t kMR = HWY_MAX_BYTES == 64 ? 12 : 6;
constexpr size_t kBlockK = 256;  // rows of a panel that fit half of L1
using FullV = hn::Vec<Full>;

inline size_t panel_lanes() {  // not HWY_INLINE: the table calls it, without the target's flags
  return 2 * hn::Lanes(Full());
}

/// C[R, 2 vectors] (+)= A·B over K steps; A(i, k) = a[i·ra + k·ka], B(k, :) = b + k·ldb.
template <size_t R>
HWY_INLINE void micro(float* HWY_RESTRICT c, size_t ldc, const float* HWY_RESTRICT a, size_t ra,
                      size_t ka, const float* HWY_RESTRICT b, size_t ldb, size_t K, bool add) {
  const Full d;
  const size_t lanes = hn::Lanes(d);
  FullV c0[R], c1[R];
#pragma GCC unroll 16
  for (size_t i = 0; i < R; ++i) c0[i] = c1[i] = hn::Zero(d);
#pragma GCC unroll 4
  for (size_t k = 0; k < K; ++k) {
    const FullV b0 = hn::LoadU(d, b + k * ldb);
    const FullV b1 = hn::LoadU(d, b + k * ldb + lanes);
#pragma GCC unroll 16
    for (size_t i = 0; i < R; ++i) {
      const FullV x = hn::Set(d, a[i * ra + k * ka]);
      c0[i] = hn::MulAdd(x, b0, c0[i]);
      c1[i] = hn::MulAdd(x, b1, c1[i]);
    }
  }
#pragma GCC unroll 16
  for (size_t i = 0; i < R; ++i) {
    float* row = c + i * ldc;
    if (add) {
      c0[i] = hn::Add(c0[i], hn::LoadU(d, row));
      c1[i] = hn::Add(c1[i], hn::LoadU(d, row + lanes));
    }
    hn::StoreU(c0[i], d, row);
    hn::StoreU(c1[i], d, row + lanes);
  }
}

struct MicroArguments {
  float* c;
  size_t ldc;
  const float* a;
  size_t lda;
  const float* b;
  size_t ldb, K;
  bool add;
};

/// The micro-kernel for the last rows of a tile. kOuter: A is stored [K, rows], else [rows, K].
template <bool kOuter, size_t R>
void micro_rows(size_t rows, const MicroArguments& m) {
  if constexpr (R > 0) {
    if (rows == R) {
      micro<R>(m.c, m.ldc, m.a, kOuter ? 1 : m.lda, kOuter ? m.lda : 1, m.b, m.ldb, m.K, m.add);
    } else {
      micro_rows<kOuter, R - 1>(rows, m);
    }
  }
}

/// All rows of the tile against one panel of `width` columns (a narrow one goes through a buffer).
template <bool kOuter>
HWY_INLINE void panel_product(MicroArguments m, size_t rows, size_t width) {
  const size_t panel = panel_lanes();
  HWY_ALIGN float narrow[kMR * 2 * HWY_MAX_BYTES / sizeof(float)];
  float* const c = m.c;
  const float* const a = m.a;
  for (size_t i = 0; i < rows; i += kMR) {
    const size_t r = rows - i < kMR ? rows - i : kMR;
    m.a = kOuter ? a + i : a + i * m.lda;
    if (width == panel) {
      m.c = c + i * m.ldc;
      if (r == kMR) {
        micro<kMR>(m.c, m.ldc, m.a, kOuter ? 1 : m.lda, kOuter ? m.lda : 1, m.b, m.ldb, m.K, m.add);
      } else {
        micro_rows<kOuter, kMR - 1>(r, m);
      }
      continue;
    }
    MicroArguments part = m;
    part.c = narrow;
    part.ldc = panel;
    part.add = false;
    micro_rows<kOuter, kMR>(r, part);
    for (size_t y = 0; y < r; ++y) {
      for (size_t x = 0; x < width; ++x) {
        float& target = c[(i + y) * m.ldc + x];
        target = narrow[y * panel + x] + (m.add ? target : 0.0f);
      }
    }
  }
}

inline void pack(float* packed, const float* b, size_t K, size_t N, size_t row_step,
                 size_t col_step) {
  const size_t panel = panel_lanes();
  for (size_t n = 0; n < N; n += panel) {
    const size_t width = N - n < panel ? N - n : panel;
    float* to = packed + n * K;
    for (size_t k = 0; k < K; ++k) {
      const float* from = b + k * row_step + n * col_step;
      for (size_t j = 0; j < width; ++j) to[k * panel + j] = from[j * col_step];
      for (size_t j = width; j < panel; ++j) to[k * panel + j] = 0.0f;
    }
  }
}

inline void multiply(float* c, size_t ldc, const float* a, size_t lda, const float* packed,
                     size_t M, size_t K, size_t N, bool add) {
  const size_t panel = panel_lanes();
  for (size_t n = 0; n < N; n += panel) {
    const size_t width = N - n < panel ? N - n : panel;
    for (size_t k = 0; k < K; k += kBlockK) {
      const size_t depth = K - k < kBlockK ? K - k : kBlockK;
      const float* b = packed + n * K + k * panel;
      panel_product<false>({c + n, ldc, a + k, lda, b, panel, depth, add || k > 0}, M, width);
    }
  }
}

/// P panels of one row side by side: 2P independent chains, and P streams of weights at once.
template <size_t P>
HWY_INLINE void micro_row(float* HWY_RESTRICT c, const float* HWY_RESTRICT a,
                          const float* HWY_RESTRICT b, size_t K, const float* bias) {
  const Full d;
  const size_t lanes = hn::Lanes(d), panel = 2 * lanes, stride = panel * K;
  FullV sum[2 * P];
#pragma GCC unroll 8
  for (size_t i = 0; i < 2 * P; ++i) {
    sum[i] = bias == nullptr ? hn::Zero(d) : hn::LoadU(d, bias + i * lanes);
  }
  for (size_t k = 0; k < K; ++k) {
    const FullV x = hn::Set(d, a[k]);
    const float* row = b + k * panel;
#pragma GCC unroll 4
    for (size_t p = 0; p < P; ++p) {
      sum[2 * p] = hn::MulAdd(x, hn::LoadU(d, row + p * stride), sum[2 * p]);
      sum[2 * p + 1] = hn::MulAdd(x, hn::LoadU(d, row + p * stride + lanes), sum[2 * p + 1]);
    }
  }
#pragma GCC unroll 8
  for (size_t i = 0; i < 2 * P; ++i) hn::StoreU(sum[i], d, c + i * lanes);
}

/// c[N] = a[K]·B + bias. Bound by the cache that the weights come from.
inline void multiply_row(float* c, const float* a, const float* packed, size_t K, size_t N,
                         const float* bias) {
  const size_t panel = panel_lanes();
  const auto bias_at = [bias](size_t n) { return bias == nullptr ? nullptr : bias + n; };
  size_t n = 0;
  for (; n + 4 * panel <= N; n += 4 * panel) micro_row<4>(c + n, a, packed + n * K, K, bias_at(n));
  for (; n + 2 * panel <= N; n += 2 * panel) micro_row<2>(c + n, a, packed + n * K, K, bias_at(n));
  for (; n + panel <= N; n += panel) micro_row<1>(c + n, a, packed + n * K, K, bias_at(n));
  if (n == N) return;
  HWY_ALIGN float narrow[2 * (HWY_MAX_BYTES / sizeof(float))] = {};
  micro_row<1>(narrow, a, packed + n * K, K, nullptr);
  for (size_t i = 0; n + i < N; ++i) c[n + i] = narrow[i] + (bias == nullptr ? 0.0f : bias[n + i]);
}

inline void outer(float* c, size_t ldc, const float* a, size_t lda, const float* b, size_t ldb,
                  size_t R, size_t K, size_t N, bool add) {
  const size_t panel = panel_lanes();
  constexpr size_t kDepth = 128;  // rows of B that are copied when a panel is narrow
  HWY_ALIGN float copy[kDepth * 2 * HWY_MAX_BYTES / sizeof(float)];
  for (size_t n = 0; n < N; n += panel) {
    const size_t width = N - n < panel ? N - n : panel;
    if (width == panel) {
      panel_product<true>({c + n, ldc, a, lda, b + n, ldb, K, add}, R, width);
      continue;
    }
    for (size_t k = 0; k < K; k += kDepth) {
      const size_t depth = K - k < kDepth ? K - k : kDepth;
      for (size_t y = 0; y < depth; ++y) {
        for (size_t x = 0; x < panel; ++x) {
          copy[y * panel + x] = x < width ? b[(k + y) * ldb + n + x] : 0.0f;
        }
      }
      panel_product<true>({c + n, ldc, a + k * lda, lda, copy, panel, depth, add || k > 0}, R,
                          width);
    }
  }
}

}  // namespace rotrnn::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
