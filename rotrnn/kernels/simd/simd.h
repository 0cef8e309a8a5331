#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "rotrnn/spec/kinds.h"

/// The SIMD kernels, as one table of functions per instruction set. Every kernel works on a tile:
/// `rows` rows of `n` floats, a row `ld` floats after the last. Nothing here is checked and nothing
/// is allocated; callers own the memory. Pointers documented as optional may be null.
namespace rotrnn::kernels {

/// One function for each curve.
template <class F>
struct PerCurve {
  F forms[kCurves];
  F operator[](Curve curve) const { return forms[static_cast<size_t>(curve)]; }
};

/// Where a scan walks: the first row in scan order and the (signed) step to the next row.
struct ScanRows {
  float* first;
  ptrdiff_t step;
};

/// λ of a scan: the first row in scan order and the signed step, 0 when λ is constant.
struct ScanLambda {
  const float* re;
  const float* im;
  ptrdiff_t step;
};

/// Where the gradient of λ goes. Constant λ: added to sum [2S] (double, per tile, so that long sums
/// keep their digits). λ per token: written (or added, if add) to re and im, laid out like λ.
struct ScanLambdaGradient {
  double* sum;
  float* re;
  float* im;
  bool add;
};

/// Column sums of a tile about its first row: Σ(x - shift), Σ(x - shift)². Float is enough for the
/// rows of one tile; tiles are joined in double.
struct TileStatistics {
  float* shift;
  float* sum;
  float* square;
};

/// Channels that go together: a cache line of a row of floats.
inline constexpr size_t kChannels = 16;

/// A walk of up to kChannels channels over a tile (channel.h has the equations). Rows are kChannels
/// floats apart, parameters and states are planes [N, 2, kChannels] (re, im), all aligned to a
/// cache line and finite beyond `width` as far as a vector reaches.
struct ChannelTile {
  size_t rows, width, N;
  bool backwards;  // from the last row to the first
  bool lag;        // a row meets the state before it, not the state that it is part of
  const float* u;
  const float *lambda, *c;
};

/// What joins the states of a channel, and how its input enters them: planes as in ChannelTile.
struct ChannelRank {
  const float *p, *q, *b;
};

/// Frequencies of a tile of S4's kernel: with two columns of sums for each of a few products and
/// their gradients, it stays in L2, and mostly in L1.
inline constexpr size_t kDplrTile = 256;

/// Some frequencies of one channel (dplr.h has the equations): sine and cosine of φ, aligned, and
/// defined as far as a vector reaches; terms [n, 2 + 2·columns].
struct DplrTile {
  size_t n, columns, count;
  const double *sine, *cosine;
  const double* terms;
};

/// A stage of an FFT: blocks of radix·step points. twiddles [step, radix - 1] (re, im):
/// e^{-2πi·qj/(radix·step)} of point j, q from 1 on.
struct FftStage {
  size_t radix, step;  // radix 2, 3, 4 or 5
  const float* twiddles;
};

/// The stages of an FFT, from whole to single points (fft.h makes it).
struct FftPlan {
  size_t n, count;
  const FftStage* stages;
};

/// Rows of `width` floats as points of some FFTs side by side, `apart` floats from one to the next:
/// fft_lanes columns each, 0 beyond the width. `step`: floats from a row to the next, signed.
struct FftRows {
  size_t count, width;
  ptrdiff_t step;
  size_t apart;
};

/// Samples of a bank of rotations (frontend/rotations.h). λ [bands], planes of states
/// [channels, bands], all aligned to a cache line; bands are a multiple of kBands, and λ is 0 in
/// those that fill up.
struct RotationTile {
  size_t rows, channels, bands;
  const float *lambda_re, *lambda_im;
  const float* x;  // [rows, channels]
};

/// Bands come in multiples of this: a cache line, and whole vectors.
inline constexpr size_t kBands = 16;

/// States of a bank that read the same inputs (features/bank.h has the equations): a vector of
/// AVX-512. Thresholds of a state, and most inputs that it reads.
inline constexpr size_t kBankStates = 16, kBankThresholds = 5, kBankTaps = 3;

/// Rows u and the groups of states that walk over them, of a bank with so many states.
struct BankTile {
  size_t rows, ld;
  const float* u;
  size_t first, last, states;  // groups, not behind the last; all states
  size_t taps;
  const int32_t* inputs;             // [groups, taps]
  const float* weights;              // [groups, taps, 2 (re, im), kBankStates]
  const float *lambda, *thresholds;  // [2, states], [kBankThresholds, states]
};

/// What such a walk takes along: planes of `plane` states, the first being that of group `first`.
/// z [2, plane], maxima [plane], and [kBankThresholds, plane] of counts or forgetting shares.
struct BankMemory {
  float *z, *most;
  int32_t* counts;
  float* shares;
  size_t plane, first;
};

struct Table {
  const char* name;

  // Packed tile GEMM. A panel holds `panel_width` columns of B, all K rows of them, zero-padded.
  size_t panel_width;
  void (*pack)(float* packed, const float* b, size_t K, size_t N, size_t row_step, size_t col_step);
  void (*multiply)(float* c, size_t ldc, const float* a, size_t lda, const float* packed, size_t M,
                   size_t K, size_t N, bool add);
  /// c[N] = a[K]·B + bias (null: none): one row, as streams bring them.
  void (*multiply_row)(float* c, const float* a, const float* packed, size_t K, size_t N,
                       const float* bias);
  /// C[R, N] (+)= AᵀB with A [K, R], B [K, N], both row-major.
  void (*outer)(float* c, size_t ldc, const float* a, size_t lda, const float* b, size_t ldb,
                size_t R, size_t K, size_t N, bool add);

  /// C[rows, columns] += sign·AᵀB in double, with A and B packed [K, double_panel]; rows and
  /// columns up to double_panel.
  size_t double_panel;
  void (*add_product)(double* c, size_t ldc, const double* a, const double* b, size_t K,
                      size_t rows, size_t columns, double sign);

  // Scan (scan.h has the equations). state [2S] goes in as z before the first row, out as the last.
  void (*scan)(ScanRows z, size_t rows, size_t S, ScanLambda lambda, float* state);
  void (*scan_end)(ScanRows v, size_t rows, size_t S, ScanLambda lambda, float* state);
  void (*scan_adjoint)(ScanRows g, size_t rows, size_t S, ScanLambda lambda, ScanRows z,
                       const float* z_before, float* carry, ScanLambdaGradient gradient);
  void (*scan_adjoint_end)(ScanRows g, size_t rows, size_t S, ScanLambda lambda, float* carry);

  // Channels. channel_scan: x ← λx + u, y += Σ Re(c·x); state is x. channel_adjoint:
  //   p ← conj(λ)p + h, h ← conj(λ)h + dy;   du += Σ Re(conj(c)·h);   sums += (u·h, u·p)
  // with state [N, 4, kChannels] (h, then p) and sums laid out like it.
  // channel_rank_scan: s = Σ Re(q·x), x ← λx + p·s + b·u, y += Σ Re(c·x); state is x.
  void (*channel_scan)(const ChannelTile& tile, float* y, float* state);
  void (*channel_rank_scan)(const ChannelTile& tile, const ChannelRank& rank, float* y,
                            float* state);
  void (*channel_adjoint)(const ChannelTile& tile, const float* dy, float* du, float* state,
                          double* sums);

  // The kernel of S4. Sums r and their gradients g are planes [columns, 2, kDplrTile] (re, im),
  // aligned; beyond the last frequency g is 0 as far as a vector reaches. dplr_gradient adds to
  // out, laid out like the terms.
  void (*dplr_sums)(const DplrTile& tile, double* r);
  void (*dplr_gradient)(const DplrTile& tile, const double* g, double* out);

  // Rotations. rotate: w ← λw + x, sum += |w|²; state is the planes re, im, sum; with `kept`
  // [rows, 2 planes] w is written for every row. rotate_adjoint, from the last row to the first:
  //   h = g·w + carry, carry ← conj(λ)h, sums (planes re, im) += h·conj(w before), dx += Σ Re h
  // with w as kept, `before` that before the first row, dx [rows, channels] or null.
  void (*rotate)(const RotationTile& tile, float* state, float* kept);
  void (*rotate_adjoint)(const RotationTile& tile, const float* w, const float* before,
                         const float* g, float* carry, double* sums, float* dx);
  /// out[n] = (log(sum·xi2·share + floor) - mean)·inverse; planes are aligned and go on for as far
  /// as a vector reaches, out need not.
  void (*rotation_token)(const float* sum, const float* xi2, float share, float floor,
                         const float* mean, const float* inverse, float* out, size_t n);

  // Banks of rotations. bank_count adds to counts and maxima. bank_forget: shares ← keep·share +
  // (1 - keep)·[v > c], maxima ← max(v, keep·maximum + (1 - keep)·v). bank_values: v [rows, plane].
  void (*bank_count)(const BankTile& tile, const BankMemory& memory);
  void (*bank_forget)(const BankTile& tile, const BankMemory& memory, float keep);
  void (*bank_values)(const BankTile& tile, const BankMemory& memory, float* values);

  // FFTs along time of fft_lanes channels at once: points [2, fft_lanes] (re, im), aligned. Those
  // from `live` on are taken as zeros, whatever is there. Spectra are in an order of their own, the
  // same for all of one plan; inverse lacks 1/n.
  size_t fft_lanes;
  void (*fft)(const FftPlan& plan, float* data, size_t live);
  void (*fft_inverse)(const FftPlan& plan, float* data);
  /// data ← inverse(spectrum ⊙ fft(data)).
  void (*fft_convolve)(const FftPlan& plan, float* data, const float* spectrum, size_t live);
  /// sum += fft(g) ⊙ conj(fft(x)), g ← inverse(conj(spectrum) ⊙ fft(g)); x is lost.
  void (*fft_convolve_adjoint)(const FftPlan& plan, float* g, float* x, const float* spectrum,
                               float* sum, size_t live);
  /// The part (re or im) of points from rows times scale, or back.
  void (*fft_load)(const FftRows& shape, const float* rows, float* part, float scale);
  void (*fft_store)(const FftRows& shape, const float* part, float* rows, float scale, bool add);

  // Rows and columns.
  void (*affine)(const float* x, size_t ldx, const float* a, const float* c, float* u, size_t ldu,
                 size_t rows, size_t n);
  void (*layer_norm)(const float* x, size_t ldx, const float* w, const float* b, float eps,
                     float* u, size_t ldu, size_t rows, size_t n);
  void (*add_rows)(float* x, size_t ldx, const float* row, size_t rows, size_t n);
  void (*column_sum)(const float* x, size_t ldx, size_t rows, size_t n, double* sum);
  void (*column_statistics)(const float* x, size_t ldx, size_t rows, size_t n, TileStatistics s);

  // The branch after the system; formulas in activations.h.
  using Preactivate = void (*)(float* y, size_t ldy, const float* u, size_t ldu, const float* skip,
                               const float* e, const float* mask, float* h, size_t ldh, size_t rows,
                               size_t n);
  PerCurve<Preactivate> preactivate;
  void (*gate)(float* q, size_t ldq, const float* q_bias, float* s, size_t lds, const float* s_bias,
               const float* mask, const float* x, size_t ldx, float* out, size_t ldo, size_t rows,
               size_t n, const TileStatistics* statistics);
  void (*residual)(const float* h, size_t ldh, const float* x, size_t ldx, float* out, size_t ldo,
                   size_t rows, size_t n, const TileStatistics* statistics);
  void (*project)(const float* y, size_t ldy, const float* u, size_t ldu, const float* skip,
                  const float* e, const float* mask, const float* x, size_t ldx, float* out,
                  size_t ldo, size_t rows, size_t n, const TileStatistics* statistics);
  void (*project_backward)(const float* dout, size_t ldo, const float* mask, const float* u,
                           size_t ldu, float* dy, size_t lddy, float* skip_sum, float* e_sum,
                           size_t rows, size_t n);
  using CurvePair = void (*)(const float* y, size_t ldy, const float* mask, float* h, size_t ldh,
                             float* d, size_t ldd, size_t rows, size_t n);
  PerCurve<CurvePair> curve_pair;
  void (*gate_backward)(const float* dout, size_t ldo, const float* mask, const float* q,
                        size_t ldq, const float* s, size_t lds, float* dq, size_t lddq, float* ds,
                        size_t ldds, float* dq_sum, float* ds_sum, size_t rows, size_t n);
  void (*preactivate_backward)(float* dh, size_t lddh, const float* d, size_t ldd,
                               const float* dout, size_t ldo, const float* mask, const float* s,
                               size_t lds, bool direct_h, bool direct_y, const float* u, size_t ldu,
                               float* skip_sum, float* e_sum, size_t rows, size_t n);

  // Backward of the norms: du += skip⊙dy, column sums, dx. See norm.h.
  void (*batch_norm_backward)(float* du, size_t lddu, const float* dy, size_t lddy,
                              const float* skip, const float* x, size_t ldx, const float* mean,
                              const float* rstd, const float* scale, const float* dout, size_t ldo,
                              float* dx, size_t lddx, float* sum, float* product, size_t rows,
                              size_t n);
  void (*layer_norm_backward)(float* du, size_t lddu, const float* dy, size_t lddy,
                              const float* skip, const float* x, size_t ldx, const float* w,
                              float eps, const float* dout, size_t ldo, float* dx, size_t lddx,
                              float* sum, float* product, size_t rows, size_t n);
  void (*finish)(const float* partial, size_t ldp, const float* scale, const float* x, size_t ldx,
                 const float* q, const float* s, float* out, size_t ldo, size_t rows, size_t n);

  /// Multiply-adds in registers alone, for the peak: returns the floating-point operations done.
  double (*fma_loop)(size_t times);

  // Vectors.
  void (*axpy)(float* y, const float* x, float scale, size_t n);
  using CurveValues = void (*)(const float* x, float* y, size_t n);
  using CurveBackward = void (*)(const float* x, const float* dy, float* dx, size_t n);
  PerCurve<CurveValues> curve;
  PerCurve<CurveBackward> curve_backward;
  void (*adamw)(float* w, const float* g, float* m, float* v, size_t n, float decay, float beta1,
                float beta2, float step, float root_scale, float eps);
};

/// The table in use: the best that the CPU has, or the one named by ROTRNN_SIMD, or by set_target.
const Table& table();

/// Chooses a table by name ("avx512", "avx2", "baseline", "scalar"), "" for the best. Throws
/// std::invalid_argument, naming those there are, when this build or CPU does not have it.
void set_target(const std::string& name);

/// Names of the tables that this build and CPU have, best first.
std::vector<std::string> available_targets();

}  // namespace rotrnn::kernels
