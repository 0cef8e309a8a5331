#include "rotrnn/kernels/maps/rotrnn_map.h"

#include <complex>

#include "rotrnn/kernels/maps/expm.h"
#include "rotrnn/kernels/oracle/block_reference.h"
#include "tests/kernels/test_util.h"

namespace rotrnn::kernels::testing {
namespace {

using reference::product;
using reference::transpose;

/// expm by brute force: 40 Taylor terms after scaling by 2^-s.
Doubles slow_expm(Doubles A, size_t d) {
  const int s = 8;
  for (double& x : A) x /= 1 << s;
  Doubles sum(d * d), term(d * d);
  for (size_t i = 0; i < d; ++i) sum[i * d + i] = term[i * d + i] = 1;
  for (int k = 1; k < 40; ++k) {
    term = product(term, A, d, d, d);
    for (double& x : term) x /= k;
    for (size_t i = 0; i < d * d; ++i) sum[i] += term[i];
  }
  for (int i = 0; i < s; ++i) sum = product(sum, sum, d, d, d);
  return sum;
}

Doubles random_skew(size_t d, double scale, uint64_t seed) {
  const Doubles M = widen(normal(d * d, seed, scale));
  Doubles A(d * d);
  for (size_t i = 0; i < d * d; ++i) A[i] = M[i] - M[i % d * d + i / d];
  return A;
}

TEST(Expm, IsARotationAndMatchesBruteForce) {
  for (size_t d : {2, 3, 4, 7, 8, 16, 33, 64}) {
    for (double scale : {0.0, 0.01, 1.0}) {
      const Doubles A = random_skew(d, scale, d);
      Doubles P(d * d);
      expm_skew(A.data(), P.data(), d);
      EXPECT_LE(max_difference(P, slow_expm(A, d)), 2e-12) << d << " " << scale;
      const Doubles unit = product(P, transpose(P, d, d), d, d, d);
      for (size_t i = 0; i < d * d; ++i) EXPECT_NEAR(unit[i], i % (d + 1) == 0, 1e-12);
    }
  }
}

TEST(Expm, StaysOrthogonalForLargeMatrices) {
  for (double scale : {10.0, 1000.0}) {
    const Doubles A = random_skew(8, scale, 3);
    Doubles P(64);
    expm_skew(A.data(), P.data(), 8);
    const Doubles unit = product(P, transpose(P, 8, 8), 8, 8, 8);
    for (size_t i = 0; i < 64; ++i) EXPECT_NEAR(unit[i], i % 9 == 0, 1e-14 * scale + 1e-12);
  }
}

TEST(Expm, GradientMatchesFiniteDifferences) {
  for (size_t d : {2, 3, 5, 8, 13}) {
    Doubles M = widen(normal(d * d, 7 + d));
    const Doubles G = widen(normal(d * d, 8 + d));
    const auto value = [&] {
      Doubles A(d * d), P(d * d);
      for (size_t i = 0; i < d * d; ++i) A[i] = M[i] - M[i % d * d + i / d];
      expm_skew(A.data(), P.data(), d);
      double sum = 0;
      for (size_t i = 0; i < d * d; ++i) sum += P[i] * G[i];
      return sum;
    };
    Doubles A(d * d), dA(d * d);
    for (size_t i = 0; i < d * d; ++i) A[i] = M[i] - M[i % d * d + i / d];
    expm_skew_backward(A.data(), G.data(), dA.data(), d);
    for (size_t i = 0; i < d * d; ++i) {
      const double keep = M[i], h = 1e-5;
      M[i] = keep + h;
      const double up = value();
      M[i] = keep - h;
      const double slope = (up - value()) / (2 * h);
      M[i] = keep;
      EXPECT_NEAR(dA[i] - dA[i % d * d + i / d], slope, 1e-8) << d << " " << i;
    }
  }
}

/// All tensors of the map, in one type.
template <class T>
struct MapValues {
  std::vector<T> theta, gamma_log, M, B, C, C_reverse;
  Diagonal<T> layer;

  RotrnnParameters<T> parameters() {
    return {theta.data(), gamma_log.data(), M.data(), B.data(), C.data(), C_reverse.data()};
  }
  RotrnnParameters<const T> constant() const {
    return {theta.data(), gamma_log.data(), M.data(), B.data(), C.data(), C_reverse.data()};
  }
  DiagonalFields<T*> pointers() {
    DiagonalFields<T*> out;
    point_to(layer, out);
    return out;
  }
  DiagonalFields<const T*> constant_pointers() const {
    DiagonalFields<const T*> out;
    point_to(layer, out);
    return out;
  }
  std::vector<std::vector<T>*> inputs() { return {&theta, &gamma_log, &M, &B, &C, &C_reverse}; }
  std::vector<std::vector<T>*> outputs() {
    return {&layer.lambda_re, &layer.lambda_im, &layer.W,       &layer.V,
            &layer.V_reverse, &layer.start_re,  &layer.start_im};
  }
};

MapValues<double> random_map(const RotrnnMapSizes& s, uint64_t seed) {
  const size_t d = s.head();
  MapValues<double> v;
  v.theta = widen(uniform(s.H * s.angles(), seed, 0, 3));
  v.gamma_log = widen(uniform(s.H, seed + 1, -4, 0.5));
  v.M = widen(normal(s.H * d * d, seed + 2));
  v.B = widen(normal(s.N * s.D, seed + 3));
  v.C = widen(normal(s.D * s.N, seed + 4));
  v.C_reverse = widen(normal(s.D * s.N, seed + 5));
  const size_t sizes[] = {s.S(), s.S(), 2 * s.S() * s.D, 2 * s.S() * s.D, 2 * s.S() * s.D,
                          s.S(), s.S()};
  for (size_t i = 0; i < 7; ++i) v.outputs()[i]->assign(sizes[i], 0.0);
  return v;
}

std::vector<RotrnnMapSizes> map_sizes() {
  std::vector<RotrnnMapSizes> all;
  for (size_t dh : {2, 3, 5, 8}) {
    for (Normalisation n : {Normalisation::xi, Normalisation::alpha, Normalisation::none}) {
      RotrnnMapSizes s;
      s.D = 5, s.H = 3, s.N = 3 * dh, s.normalisation = n;
      s.bidirectional = dh != 5, s.stationary = dh != 8, s.c = dh == 3 ? 1.7 : 1.0;
      s.threads = static_cast<int>(dh % 3) + 1;
      all.push_back(s);
    }
  }
  return all;
}

template <class T>
void forward(const RotrnnMapSizes& s, const RotrnnForward<T>& layer) {
  rotrnn_map_forward<T>(s, {&layer, 1});
}

/// The unmapped recurrence of the paper, head by head, against the mapped system.
TEST(RotrnnMap, MappedSystemEqualsThePaper) {
  for (const RotrnnMapSizes& s : map_sizes()) {
    MapValues<double> v = random_map(s, 11);
    const size_t d = s.head(), S = s.S(), steps = 9;
    Doubles P(s.H * d * d);
    forward<double>(s, {v.constant(), v.pointers(), P.data()});
    Doubles x(s.N), mapped(steps * s.D), paper(steps * s.D);
    std::vector<std::complex<double>> z(S);
    for (size_t t = 0; t < steps; ++t) {
      const Doubles u = widen(normal(s.D, 50 + t));
      for (size_t h = 0; h < s.H; ++h) {
        const double gamma = std::exp(-std::exp(v.gamma_log[h]));
        double square = 0;
        for (size_t i = 0; i < d * s.D; ++i) square += std::pow(v.B[h * d * s.D + i], 2);
        const double xi = std::sqrt(s.c * (1 - gamma * gamma) / square);
        const double alpha = 1 / std::sqrt(s.c * gamma * gamma + square);
        const double gain = s.normalisation == Normalisation::xi      ? xi
                            : s.normalisation == Normalisation::alpha ? alpha
                                                                      : 1.0;
        const double decay = s.normalisation == Normalisation::alpha ? alpha * gamma : gamma;
        Doubles A(d * d), theta(d * d), old(x.begin() + long(h * d), x.begin() + long((h + 1) * d));
        for (size_t i = 0; i < d * d; ++i) {
          A[i] = v.M[h * d * d + i] - v.M[h * d * d + i % d * d + i / d];
        }
        const Doubles rotation = slow_expm(A, d);
        if (d % 2 == 1) theta[d * d - 1] = 1;
        for (size_t j = 0; j < s.angles(); ++j) {
          const double a = v.theta[h * s.angles() + j];
          theta[2 * j * d + 2 * j] = theta[(2 * j + 1) * d + 2 * j + 1] = std::cos(a);
          theta[2 * j * d + 2 * j + 1] = -std::sin(a);
          theta[(2 * j + 1) * d + 2 * j] = std::sin(a);
        }
        const Doubles turn =
            product(product(rotation, theta, d, d, d), transpose(rotation, d, d), d, d, d);
        // stationary: the first input is scaled by 1/sqrt(1-|λ|²).
        const double first = t == 0 && s.stationary ? 1 / std::sqrt(1 - decay * decay) : 1.0;
        for (size_t i = 0; i < d; ++i) {
          double next = 0;
          for (size_t k = 0; k < d; ++k) next += decay * turn[i * d + k] * old[k];
          for (size_t k = 0; k < s.D; ++k) {
            next += first * gain * v.B[(h * d + i) * s.D + k] * u[k];
          }
          x[h * d + i] = next;
        }
      }
      for (size_t i = 0; i < S; ++i) {
        std::complex<double> drive;
        for (size_t k = 0; k < s.D; ++k) {
          drive +=
              std::complex<double>(v.layer.W[i * s.D + k], v.layer.W[(S + i) * s.D + k]) * u[k];
        }
        if (t == 0 && s.stationary)
          z[i] = std::complex<double>(v.layer.start_re[i], v.layer.start_im[i]) * drive;
        z[i] = std::complex<double>(v.layer.lambda_re[i], v.layer.lambda_im[i]) * z[i] + drive;
      }
      for (size_t r = 0; r < s.D; ++r) {
        for (size_t i = 0; i < s.N; ++i) paper[t * s.D + r] += v.C[r * s.N + i] * x[i];
        for (size_t i = 0; i < S; ++i) {
          mapped[t * s.D + r] +=
              v.layer.V[r * 2 * S + i] * z[i].real() + v.layer.V[r * 2 * S + S + i] * z[i].imag();
        }
      }
    }
    EXPECT_LE(max_difference(paper, mapped), 1e-12 * (10 + max_value(paper))) << "dh " << d;
  }
}

TEST(RotrnnMap, GradientMatchesFiniteDifferences) {
  for (const RotrnnMapSizes& s : map_sizes()) {
    SCOPED_TRACE("dh " + std::to_string(s.head()) + " normalisation " +
                 std::to_string(static_cast<int>(s.normalisation)));
    MapValues<double> v = random_map(s, 21), g = v, weights = v;
    Doubles P(s.N * s.head());
    uint64_t seed = 70;
    for (Doubles* w : weights.outputs()) *w = widen(normal(w->size(), ++seed));
    if (!s.stationary)
      weights.layer.start_re.assign(s.S(), 0.0), weights.layer.start_im.assign(s.S(), 0.0);
    if (!s.bidirectional) weights.layer.V_reverse.assign(weights.layer.V_reverse.size(), 0.0);
    const auto value = [&] {
      forward<double>(s, {v.constant(), v.pointers(), P.data()});
      double sum = 0;
      for (size_t k = 0; k < 7; ++k) {
        for (size_t i = 0; i < v.outputs()[k]->size(); ++i) {
          sum += (*v.outputs()[k])[i] * (*weights.outputs()[k])[i];
        }
      }
      return sum;
    };
    value();
    for (Doubles* x : g.inputs()) x->assign(x->size(), 0.0);
    const RotrnnBackward<double> job{v.constant(), P.data(), weights.constant_pointers(),
                                     g.parameters()};
    rotrnn_map_backward<double>(s, {&job, 1});
    for (size_t k = 0; k < 6; ++k) {
      Doubles& x = *v.inputs()[k];
      for (size_t i = 0; i < x.size(); ++i) {
        const double keep = x[i], h = 1e-5;
        x[i] = keep + h;
        const double up = value();
        x[i] = keep - h;
        const double slope = (up - value()) / (2 * h);
        x[i] = keep;
        EXPECT_NEAR((*g.inputs()[k])[i], slope, 1e-6 * (1 + std::abs(slope))) << k << " " << i;
      }
    }
  }
}

TEST(RotrnnMap, FloatIsTheRoundedDouble) {
  RotrnnMapSizes s;
  s.D = 6, s.H = 2, s.N = 14, s.bidirectional = true, s.stationary = true;
  MapValues<double> wide = random_map(s, 31);
  MapValues<float> narrow;
  for (size_t k = 0; k < 6; ++k) {
    narrow.inputs()[k]->assign(wide.inputs()[k]->begin(), wide.inputs()[k]->end());
    wide.inputs()[k]->assign(narrow.inputs()[k]->begin(), narrow.inputs()[k]->end());
  }
  for (size_t k = 0; k < 7; ++k) narrow.outputs()[k]->resize(wide.outputs()[k]->size());
  Doubles P(s.N * s.head());
  forward<double>(s, {wide.constant(), wide.pointers(), P.data()});
  forward<float>(s, {narrow.constant(), narrow.pointers(), P.data()});
  for (size_t k = 0; k < 7; ++k) {
    for (size_t i = 0; i < wide.outputs()[k]->size(); ++i) {
      EXPECT_EQ((*narrow.outputs()[k])[i], static_cast<float>((*wide.outputs()[k])[i]));
    }
  }
}

}  // namespace
}  // namespace rotrnn::kernels::testing
