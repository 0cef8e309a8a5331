#include "rotrnn/layers/state_space/real_fft.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <complex>
#include <map>
#include <memory>
#include <mutex>
#include <numbers>
#include <utility>
#include <vector>

#include "rotrnn/base/arena.h"
#include "rotrnn/base/threads.h"

namespace rotrnn {
namespace {

using Complex = std::complex<double>;

// Rows go side by side, so that no stage of any radix has to shuffle. Two vectors of 16 bytes: half
// a cache line of x, and a transform of 16,000 points is still within L2.
using Vector = double __attribute__((vector_size(16)));
constexpr size_t kVectors = 2, kLanes = 2 * kVectors;

struct Lanes {
  Vector v[kVectors];

  double get(size_t i) const { return v[i / 2][i % 2]; }
  void set(size_t i, double x) { v[i / 2][i % 2] = x; }
};

inline Lanes operator+(Lanes a, const Lanes& b) {
  for (size_t i = 0; i < kVectors; ++i) a.v[i] += b.v[i];
  return a;
}
inline Lanes operator-(Lanes a, const Lanes& b) {
  for (size_t i = 0; i < kVectors; ++i) a.v[i] -= b.v[i];
  return a;
}
inline Lanes operator*(double s, Lanes a) {
  for (size_t i = 0; i < kVectors; ++i) a.v[i] *= s;
  return a;
}

struct RealFftPoint {
  Lanes re, im;
};

inline RealFftPoint operator+(const RealFftPoint& a, const RealFftPoint& b) {
  return {a.re + b.re, a.im + b.im};
}
inline RealFftPoint operator-(const RealFftPoint& a, const RealFftPoint& b) {
  return {a.re - b.re, a.im - b.im};
}
inline RealFftPoint operator*(double s, const RealFftPoint& a) {
  return {s * a.re, s * a.im};
}
inline RealFftPoint operator*(const Complex& w, const RealFftPoint& a) {
  return {w.real() * a.re - w.imag() * a.im, w.real() * a.im + w.imag() * a.re};
}
inline RealFftPoint conj(const RealFftPoint& a) {
  return {a.re, -1.0 * a.im};
}
inline RealFftPoint swapped(const RealFftPoint& a) {
  return {a.im, a.re};
}
inline RealFftPoint minus_i_times(const RealFftPoint& a) {
  return {a.im, -1.0 * a.re};
}

// e^{-2πi·k/n}, the angle reduced while it is a whole number.
Complex root(size_t k, size_t n) {
  const double angle = -2 * std::numbers::pi * static_cast<double>(k % n) / static_cast<double>(n);
  return {std::cos(angle), std::sin(angle)};
}

// ------------------------------------------------------------------------- complex transforms

/// Σ_k a_k e^{-2πijk/R} of R points, in place.
template <size_t R>
struct Butterfly {
  std::array<double, R> cosine, sine;

  Butterfly() {
    for (size_t i = 0; i < R; ++i) {
      cosine[i] = root(i, R).real();
      sine[i] = -root(i, R).imag();
    }
  }

  void operator()(RealFftPoint* a) const {
    constexpr size_t half = R / 2;
    RealFftPoint sum[half + 1], difference[half + 1], out[R];
    out[0] = a[0];
    for (size_t k = 1; k <= half; ++k) {
      sum[k] = a[k] + a[R - k];
      difference[k] = a[k] - a[R - k];
      out[0] = out[0] + sum[k];
    }
    for (size_t j = 1; j <= half; ++j) {
      RealFftPoint even = a[0] + cosine[j] * sum[1], odd = sine[j] * difference[1];
      for (size_t k = 2; k <= half; ++k) {
        even = even + cosine[j * k % R] * sum[k];
        odd = odd + sine[j * k % R] * difference[k];
      }
      odd = minus_i_times(odd);
      out[j] = even + odd;
      out[R - j] = even - odd;
    }
    std::copy_n(out, R, a);
  }
};

template <>
struct Butterfly<2> {
  void operator()(RealFftPoint* a) const {
    const RealFftPoint b = a[0] - a[1];
    a[0] = a[0] + a[1];
    a[1] = b;
  }
};

template <>
struct Butterfly<4> {
  void operator()(RealFftPoint* a) const {
    const RealFftPoint b = a[0] + a[2], c = a[0] - a[2], d = a[1] + a[3];
    const RealFftPoint e = minus_i_times(a[1] - a[3]);
    a[0] = b + d;
    a[1] = c + e;
    a[2] = b - d;
    a[3] = c - e;
  }
};

struct Stage {
  size_t radix, step, stride;     // blocks of radix·step points, `stride` of them side by side
  std::vector<Complex> twiddles;  // [step, radix - 1]
};

// One stage of Stockham's transform: it sorts on its way.
template <size_t R>
void run_stage(const Stage& stage, const RealFftPoint* from, RealFftPoint* to) {
  static const Butterfly<R> butterfly;
  const size_t m = stage.step, s = stage.stride;
  for (size_t p = 0; p < m; ++p) {
    const Complex* w = stage.twiddles.data() + p * (R - 1);
    for (size_t q = 0; q < s; ++q) {
      RealFftPoint a[R];
      for (size_t k = 0; k < R; ++k) a[k] = from[q + s * (p + m * k)];
      butterfly(a);
      RealFftPoint* out = to + q + s * R * p;
      out[0] = a[0];
      for (size_t k = 1; k < R; ++k) out[s * k] = w[k - 1] * a[k];
    }
  }
}

void run_stage(const Stage& stage, const RealFftPoint* from, RealFftPoint* to) {
  switch (stage.radix) {
    case 2:
      return run_stage<2>(stage, from, to);
    case 3:
      return run_stage<3>(stage, from, to);
    case 4:
      return run_stage<4>(stage, from, to);
    case 5:
      return run_stage<5>(stage, from, to);
    case 7:
      return run_stage<7>(stage, from, to);
    case 11:
      return run_stage<11>(stage, from, to);
    default:
      return run_stage<13>(stage, from, to);
  }
}

/// Radices of n, and what is left of it.
std::pair<std::vector<size_t>, size_t> factors(size_t n) {
  std::vector<size_t> radices;
  for (const size_t r : {4, 2, 3, 5, 7, 11, 13}) {
    for (; n % r == 0; n /= r) radices.push_back(r);
  }
  return {radices, n};
}

/// Forward, Σ_j z_j e^{-2πijk/n}; the inverse is the same with real and imaginary parts exchanged
/// before and after.
struct Fft {
  size_t n = 1, points = 1;  // of a transform, and of its buffers
  std::vector<Stage> stages;
  // Bluestein: jk = (j² + k² - (k-j)²)/2, a convolution with e^{iπj²/n}.
  std::unique_ptr<Fft> inner;
  std::vector<Complex> chirp, filter;

  explicit Fft(size_t size);

  /// Of what is in a; a and b have `points`, and the result is in one of them.
  RealFftPoint* operator()(RealFftPoint* a, RealFftPoint* b) const {
    if (inner) return bluestein(a, b);
    for (const Stage& stage : stages) {
      run_stage(stage, a, b);
      std::swap(a, b);
    }
    return a;
  }

 private:
  RealFftPoint* bluestein(RealFftPoint* a, RealFftPoint* b) const {
    for (size_t j = 0; j < n; ++j) a[j] = chirp[j] * a[j];
    std::fill(a + n, a + points, RealFftPoint{});
    RealFftPoint *x = (*inner)(a, b), *other = x == a ? b : a;
    for (size_t j = 0; j < points; ++j) x[j] = swapped(filter[j] * x[j]);
    x = (*inner)(x, other);
    for (size_t j = 0; j < n; ++j) x[j] = chirp[j] * swapped(x[j]);
    return x;
  }
};

// The smallest 2^a·{1, 3, 5, 9, 15} that is enough.
size_t bluestein_size(size_t least) {
  size_t best = 0;
  for (const size_t odd : {1, 3, 5, 9, 15}) {
    size_t n = odd;
    while (n < least) n *= 2;
    if (best == 0 || n < best) best = n;
  }
  return best;
}

Fft::Fft(size_t size) : n(size), points(size) {
  const auto [radices, rest] = factors(n);
  if (rest == 1) {
    size_t block = n, stride = 1;
    for (const size_t r : radices) {
      Stage stage{r, block / r, stride, {}};
      for (size_t p = 0; p < stage.step; ++p) {
        for (size_t k = 1; k < r; ++k) stage.twiddles.push_back(root(p * k, block));
      }
      stages.push_back(std::move(stage));
      block /= r;
      stride *= r;
    }
    return;
  }
  points = bluestein_size(2 * n - 1);
  inner = std::make_unique<Fft>(points);
  for (size_t j = 0; j < n; ++j) chirp.push_back(root(j * j, 2 * n));
  std::vector<RealFftPoint> a(points, RealFftPoint{}), b(points);
  for (size_t j = 0; j < n; ++j) {
    for (const size_t at : {j, (points - j) % points}) {
      a[at].re.set(0, chirp[j].real());
      a[at].im.set(0, -chirp[j].imag());
    }
  }
  const RealFftPoint* x = (*inner)(a.data(), b.data());
  for (size_t j = 0; j < points; ++j) {
    filter.push_back(Complex(x[j].re.get(0), x[j].im.get(0)) / static_cast<double>(points));
  }
}

// ---------------------------------------------------------------------------- real transforms

/// Of an even n the even and the odd samples are the parts of one transform of n/2; of an odd one
/// two rows are.
struct RealFftPlan {
  size_t n;
  bool even;
  Fft fft;
  std::vector<Complex> roots;  // e^{-2πij/n}, j ≤ n/2, of an even n

  explicit RealFftPlan(size_t size) : n(size), even(size % 2 == 0), fft(even ? size / 2 : size) {
    for (size_t j = 0; even && j <= n / 2; ++j) roots.push_back(root(j, n));
  }

  size_t frequencies() const { return n / 2 + 1; }
  size_t rows() const { return even ? kLanes : 2 * kLanes; }  // that go together
};

const RealFftPlan& plan_of(size_t n) {
  static std::mutex mutex;
  static std::map<size_t, std::unique_ptr<RealFftPlan>> plans;
  const std::lock_guard lock(mutex);
  std::unique_ptr<RealFftPlan>& plan = plans[n];
  if (!plan) plan = std::make_unique<RealFftPlan>(n);
  return *plan;
}

/// Rows begin … of a call; those beyond its last are 0, and not stored.
struct RealFftRows {
  size_t begin, count;
};

/// f(rows, two buffers) for all groups of rows, on any thread.
template <class F>
void for_groups(int threads, size_t rows, const RealFftPlan& plan, const F& f) {
  kernels::Arena arena;
  std::vector<RealFftPoint*> buffers(static_cast<size_t>(threads));
  for (RealFftPoint*& buffer : buffers) buffer = arena.take<RealFftPoint>(2 * plan.fft.points);
  std::atomic<size_t> next{0};
  kernels::parallel_for(threads, [&](int thread) {
    RealFftPoint* a = buffers[static_cast<size_t>(thread)];
    for (size_t at; (at = next.fetch_add(plan.rows())) < rows;) {
      f(RealFftRows{at, std::min(plan.rows(), rows - at)}, a, a + plan.fft.points);
    }
  });
}

// Frequency j of lanes `first` … of the rows, from and to [rows, frequencies].
RealFftPoint load_frequency(const RealFftPlan& plan, const RealFftRows& rows, size_t first,
                            size_t j, const double* X) {
  RealFftPoint out{};
  for (size_t i = 0; i < kLanes && first + i < rows.count; ++i) {
    const double* x = X + 2 * ((rows.begin + first + i) * plan.frequencies() + j);
    out.re.set(i, x[0]);
    out.im.set(i, x[1]);
  }
  return out;
}

void store_frequency(const RealFftPlan& plan, const RealFftRows& rows, size_t first, size_t j,
                     const RealFftPoint& value, double* X) {
  for (size_t i = 0; i < kLanes && first + i < rows.count; ++i) {
    double* x = X + 2 * ((rows.begin + first + i) * plan.frequencies() + j);
    x[0] = value.re.get(i);
    x[1] = value.im.get(i);
  }
}

Lanes load_step(const RealFftRows& rows, size_t first, const double* x) {
  Lanes out{};
  for (size_t i = 0; i < kLanes && first + i < rows.count; ++i) {
    out.set(i, x[rows.begin + first + i]);
  }
  return out;
}

void store_step(const RealFftRows& rows, size_t first, const Lanes& value, double* x) {
  for (size_t i = 0; i < kLanes && first + i < rows.count; ++i) {
    x[rows.begin + first + i] = value.get(i);
  }
}

// Z_j = E_j + i·O_j with E, O the spectra of the even and the odd samples:
// 2E_j = X_j + conj X_{m-j}, 2O_j = (X_j - conj X_{m-j})·e^{2πij/n}, m = n/2.
void inverse_even(const RealFftPlan& plan, const RealFftRows& rows, RealFftPoint* a,
                  RealFftPoint* b, const double* X, double* x, size_t stride) {
  const size_t m = plan.n / 2;
  const double scale = 1 / static_cast<double>(plan.n);
  const auto load = [&](size_t j) {
    RealFftPoint p = load_frequency(plan, rows, 0, j, X);
    if (j == 0 || j == m) p.im = Lanes{};
    return p;
  };
  // Z_j and Z_{m-j} come from the same two. Parts exchanged: it is the inverse.
  for (size_t j = 0; 2 * j <= m; ++j) {
    const RealFftPoint p = load(j), q = conj(load(m - j));
    const RealFftPoint sum = scale * (p + q);
    const RealFftPoint turned = minus_i_times(std::conj(plan.roots[j]) * (scale * (p - q)));
    a[j] = swapped(sum - turned);
    if (j > 0) a[m - j] = swapped(conj(sum + turned));
  }
  const RealFftPoint* z = plan.fft(a, b);
  for (size_t t = 0; t < m; ++t) {
    store_step(rows, 0, z[t].im, x + 2 * t * stride);
    store_step(rows, 0, z[t].re, x + (2 * t + 1) * stride);
  }
}

void forward_even(const RealFftPlan& plan, const RealFftRows& rows, RealFftPoint* a,
                  RealFftPoint* b, const double* x, size_t stride, double* X) {
  const size_t m = plan.n / 2;
  const double scale = 1 / static_cast<double>(plan.n);
  for (size_t t = 0; t < m; ++t) {
    a[t] = {load_step(rows, 0, x + 2 * t * stride), load_step(rows, 0, x + (2 * t + 1) * stride)};
  }
  const RealFftPoint* z = plan.fft(a, b);
  for (size_t j = 0; j <= m; ++j) {
    const RealFftPoint p = z[j % m], q = conj(z[(m - j) % m]);
    const RealFftPoint value = (p + q) + plan.roots[j] * minus_i_times(p - q);  // twice X_j
    store_frequency(plan, rows, 0, j, (j == 0 || j == m ? scale / 2 : scale) * value, X);
  }
}

// Z_j = A_j + i·B_j, and from the end on that of the conjugates.
void inverse_odd(const RealFftPlan& plan, const RealFftRows& rows, RealFftPoint* a, RealFftPoint* b,
                 const double* X, double* x, size_t stride) {
  const double scale = 1 / static_cast<double>(plan.n);
  for (size_t j = 0; 2 * j < plan.n; ++j) {
    RealFftPoint p = scale * load_frequency(plan, rows, 0, j, X);
    RealFftPoint q = scale * load_frequency(plan, rows, kLanes, j, X);
    if (j == 0) p.im = q.im = Lanes{};
    a[j] = swapped(p - minus_i_times(q));
    if (j > 0) a[plan.n - j] = swapped(conj(p) - minus_i_times(conj(q)));
  }
  const RealFftPoint* z = plan.fft(a, b);
  for (size_t t = 0; t < plan.n; ++t) {
    store_step(rows, 0, z[t].im, x + t * stride);
    store_step(rows, kLanes, z[t].re, x + t * stride);
  }
}

void forward_odd(const RealFftPlan& plan, const RealFftRows& rows, RealFftPoint* a, RealFftPoint* b,
                 const double* x, size_t stride, double* X) {
  const double scale = 1 / static_cast<double>(plan.n);
  for (size_t t = 0; t < plan.n; ++t) {
    a[t] = {load_step(rows, 0, x + t * stride), load_step(rows, kLanes, x + t * stride)};
  }
  const RealFftPoint* z = plan.fft(a, b);
  for (size_t j = 0; 2 * j < plan.n; ++j) {
    const RealFftPoint p = z[j], q = conj(z[(plan.n - j) % plan.n]);
    const double weight = j == 0 ? scale / 2 : scale;
    store_frequency(plan, rows, 0, j, weight * (p + q), X);
    store_frequency(plan, rows, kLanes, j, weight * minus_i_times(p - q), X);
  }
}

}  // namespace

void inverse_real_fft(int threads, size_t rows, size_t n, const double* X, double* x,
                      size_t stride) {
  const RealFftPlan& plan = plan_of(n);
  for_groups(threads, rows, plan, [&](const RealFftRows& group, RealFftPoint* a, RealFftPoint* b) {
    (plan.even ? inverse_even : inverse_odd)(plan, group, a, b, X, x, stride);
  });
}

void inverse_real_fft_backward(int threads, size_t rows, size_t n, const double* dx, size_t stride,
                               double* dX) {
  const RealFftPlan& plan = plan_of(n);
  for_groups(threads, rows, plan, [&](const RealFftRows& group, RealFftPoint* a, RealFftPoint* b) {
    (plan.even ? forward_even : forward_odd)(plan, group, a, b, dx, stride, dX);
  });
}

}  // namespace rotrnn
