#include "rotrnn/kernels/recurrence/dplr.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <complex>
#include <cstring>
#include <numbers>

#include "rotrnn/base/arena.h"
#include "rotrnn/base/threads.h"
#include "rotrnn/kernels/simd/simd.h"

namespace rotrnn::kernels {
namespace {

using Complex = std::complex<double>;

// The plain product: that of the standard library looks for infinities.
inline Complex times(Complex a, Complex b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

inline Complex inverse(Complex a) {
  const double scale = 1 / (a.real() * a.real() + a.imag() * a.imag());
  return {a.real() * scale, -a.imag() * scale};
}

/// Planes [columns, 2, kDplrTile].
struct DplrPlanes {
  double* data;

  Complex get(size_t column, size_t j) const {
    const double* p = data + column * 2 * kDplrTile + j;
    return {p[0], p[kDplrTile]};
  }
  void set(size_t column, size_t j, Complex value) const {
    double* p = data + column * 2 * kDplrTile + j;
    p[0] = value.real();
    p[kDplrTile] = value.imag();
  }
  void add(size_t column, size_t j, Complex value) const { set(column, j, get(column, j) + value); }
};

/// Where the columns of a kind begin.
struct DplrColumns {
  explicit DplrColumns(const DplrSizes& s)
      : outputs(1 + s.inputs), pairs(1 + s.inputs + s.outputs) {}
  size_t inputs = 1, outputs, pairs;
};

/// Sines and cosines of all frequencies, tile by tile; beyond the last ones that divide nothing by
/// zero.
struct Angles {
  Angles(const DplrSizes& s, Arena& arena) {
    const size_t padded = (s.frequencies() + kDplrTile - 1) / kDplrTile * kDplrTile;
    sine = arena.take<double>(padded);
    cosine = arena.take<double>(padded);
    for (size_t j = 0; j < padded; ++j) {
      const double angle =
          std::numbers::pi * static_cast<double>(j) / static_cast<double>(s.length);
      sine[j] = j < s.frequencies() ? std::sin(angle) : 1;
      cosine[j] = j < s.frequencies() ? std::cos(angle) : 0;
    }
  }
  double *sine, *cosine;
};

DplrTile tile_at(const DplrSizes& s, const Angles& angles, const double* terms, size_t begin) {
  DplrTile tile;
  tile.n = s.n;
  tile.columns = s.columns();
  tile.count = std::min(kDplrTile, s.frequencies() - begin);
  tile.sine = angles.sine + begin;
  tile.cosine = angles.cosine + begin;
  tile.terms = terms;
  return tile;
}

/// Runs f(channel, thread) for all channels, each on one thread.
template <typename F>
void for_channels(const DplrSizes& s, const F& f) {
  std::atomic<size_t> next{0};
  parallel_for(s.threads, [&](int thread) {
    for (size_t d = next++; d < s.D; d = next++) f(d, static_cast<size_t>(thread));
  });
}

struct Pole {
  Complex rotation;  // 2Δe^{iφ}
  double z;          // 2cΔ
  Complex low;       // 1/(1 + z·r(P P*))
};

inline Pole pole_at(const DplrTile& tile, size_t j, double step, Complex r) {
  const double z = 2 * tile.cosine[j] * step;
  return {{2 * step * tile.cosine[j], 2 * step * tile.sine[j]}, z, inverse(1.0 + z * r)};
}

}  // namespace

void dplr_forward(const DplrSizes& s, const double* terms, const double* step, double* spectrum) {
  Arena arena;
  const Angles angles(s, arena);
  const size_t planes = s.columns() * 2 * kDplrTile, J = s.frequencies();
  double* workspace = arena.take<double>(planes * static_cast<size_t>(s.threads));
  const DplrColumns at(s);
  for_channels(s, [&](size_t d, size_t thread) {
    const DplrPlanes r{workspace + thread * planes};
    for (size_t begin = 0; begin < J; begin += kDplrTile) {
      const DplrTile tile = tile_at(s, angles, terms + d * s.n * s.terms(), begin);
      table().dplr_sums(tile, r.data);
      for (size_t p = 0; p < s.pairs.size(); ++p) {
        const auto [b, c] = s.pairs[p];
        double* out = spectrum + 2 * ((p * s.D + d) * J + begin);
        for (size_t j = 0; j < tile.count; ++j) {
          const Pole pole = pole_at(tile, j, step[d], r.get(0, j));
          const Complex low =
              times(pole.z * pole.low, times(r.get(at.inputs + b, j), r.get(at.outputs + c, j)));
          const Complex K = times(pole.rotation, r.get(at.pairs + p, j) - low);
          out[2 * j] = K.real();
          out[2 * j + 1] = K.imag();
        }
      }
    }
  });
}

void dplr_backward(const DplrSizes& s, const double* terms, const double* step,
                   const double* gradient, double* dterms, double* dstep) {
  Arena arena;
  const Angles angles(s, arena);
  const size_t planes = s.columns() * 2 * kDplrTile, J = s.frequencies();
  double* workspace = arena.take<double>(2 * planes * static_cast<size_t>(s.threads));
  const DplrColumns at(s);
  for_channels(s, [&](size_t d, size_t thread) {
    const DplrPlanes r{workspace + 2 * thread * planes}, g{r.data + planes};
    double* out = dterms + d * s.n * s.terms();
    std::memset(out, 0, s.n * s.terms() * sizeof(double));
    double sum = 0;  // of Δ
    for (size_t begin = 0; begin < J; begin += kDplrTile) {
      const DplrTile tile = tile_at(s, angles, terms + d * s.n * s.terms(), begin);
      table().dplr_sums(tile, r.data);
      std::memset(g.data, 0, planes * sizeof(double));
      for (size_t p = 0; p < s.pairs.size(); ++p) {
        const size_t b = at.inputs + s.pairs[p].first, c = at.outputs + s.pairs[p].second;
        const double* given = gradient + 2 * ((p * s.D + d) * J + begin);
        for (size_t j = 0; j < tile.count; ++j) {
          const Pole pole = pole_at(tile, j, step[d], r.get(0, j));
          const Complex dK{given[2 * j], given[2 * j + 1]}, rb = r.get(b, j), rc = r.get(c, j);
          const Complex kappa = pole.z * pole.low, product = times(rb, rc);
          const Complex Q = r.get(at.pairs + p, j) - times(kappa, product);
          const Complex dQ = times(dK, std::conj(pole.rotation));
          g.set(at.pairs + p, j, dQ);
          g.add(b, j, -times(dQ, std::conj(times(kappa, rc))));
          g.add(c, j, -times(dQ, std::conj(times(kappa, rb))));
          // κ = z/(1 + z·r): by r it changes by -κ², by z by 1/(1 + z·r)².
          const Complex dkappa = -times(dQ, std::conj(product));
          g.add(0, j, -times(dkappa, std::conj(times(kappa, kappa))));
          sum += 2 * tile.cosine[j] * times(dkappa, std::conj(times(pole.low, pole.low))).real();
          sum += times(dQ, std::conj(Q)).real() / step[d];
        }
      }
      table().dplr_gradient(tile, g.data, out);
    }
    dstep[d] = sum;
  });
}

}  // namespace rotrnn::kernels
