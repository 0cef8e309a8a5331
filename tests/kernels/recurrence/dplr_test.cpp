#include "rotrnn/kernels/recurrence/dplr.h"

#include <array>
#include <complex>
#include <numbers>

#include "tests/kernels/test_util.h"

namespace rotrnn::kernels::testing {
namespace {

using Complex = std::complex<double>;
using Long = std::complex<long double>;

/// A system in the numbers of the paper.
struct System {
  DplrSizes sizes;
  std::vector<Complex> Lambda, P;               // [D, n]
  std::vector<std::vector<Complex>> ins, outs;  // B and C̃, [D, n] each
  Doubles step;                                 // [D]
};

System random_system(size_t D, size_t n, size_t length, size_t inputs, size_t outputs) {
  System s;
  s.sizes.D = D;
  s.sizes.n = n;
  s.sizes.length = length;
  s.sizes.inputs = inputs;
  s.sizes.outputs = outputs;
  for (size_t i = 0; i < std::max(inputs, outputs); ++i) {
    s.sizes.pairs.emplace_back(std::min(i, inputs - 1), std::min(i, outputs - 1));
  }
  Random random(7, RandomSite::initialise, {D, n, length});
  auto vector = [&](double scale) {
    std::vector<Complex> v(D * n);
    for (Complex& x : v) x = scale * Complex(random.normal(), random.normal());
    return v;
  };
  s.Lambda = vector(5);
  for (Complex& x : s.Lambda) x.real(-0.1 - std::abs(x.real()));
  s.P = vector(1);
  for (size_t i = 0; i < inputs; ++i) s.ins.push_back(vector(1));
  for (size_t i = 0; i < outputs; ++i) s.outs.push_back(vector(1));
  for (size_t d = 0; d < D; ++d) s.step.push_back(0.01 + 0.2 * random.uniform());
  return s;
}

/// The terms as dplr.h lists them.
Doubles terms_of(const System& s) {
  Doubles out;
  for (size_t i = 0; i < s.sizes.D * s.sizes.n; ++i) {
    const Complex mu = s.step[i / s.sizes.n] * s.Lambda[i];
    out.push_back(std::norm(mu));
    out.push_back(mu.real());
    auto add = [&](Complex v) {
      out.push_back(v.real());
      out.push_back((v * std::conj(mu)).real());
    };
    add(s.P[i] * std::conj(s.P[i]));
    for (const auto& B : s.ins) add(B[i] * std::conj(s.P[i]));
    for (const auto& C : s.outs) add(s.P[i] * C[i]);
    for (const auto& [b, c] : s.sizes.pairs) add(s.ins[b][i] * s.outs[c][i]);
  }
  return out;
}

/// K̂ [pairs, D, frequencies] by the limit-free form of the paper, in long double.
Doubles slow_spectrum(const System& s) {
  const long double pi = std::numbers::pi_v<long double>;
  Doubles out;
  for (const auto& [b, c] : s.sizes.pairs) {
    for (size_t d = 0; d < s.sizes.D; ++d) {
      for (size_t j = 0; j < s.sizes.frequencies(); ++j) {
        const Long w = std::polar(
            1.0L, -2 * pi * static_cast<long double>(j) / static_cast<long double>(s.sizes.length));
        const Long q = 1.0L + w;
        const auto step = static_cast<long double>(s.step[d]);
        auto rho = [&](auto&& v) {
          Long sum = 0;
          for (size_t n = 0; n < s.sizes.n; ++n) {
            const size_t i = d * s.sizes.n + n;
            const Long ab = v(i), Lambda = s.Lambda[i];
            sum += step * ab / (2.0L * (1.0L - w) - q * step * Lambda);
            sum += step * std::conj(ab) / (2.0L * (1.0L - w) - q * step * std::conj(Lambda));
          }
          return sum;
        };
        auto P = [&](size_t i) { return Long(s.P[i]); };
        auto B = [&](size_t i) { return Long(s.ins[b][i]); };
        auto C = [&](size_t i) { return Long(s.outs[c][i]); };
        const Long low = rho([&](size_t i) { return B(i) * std::conj(P(i)); }) *
                         rho([&](size_t i) { return P(i) * C(i); }) /
                         (1.0L + q * rho([&](size_t i) { return P(i) * std::conj(P(i)); }));
        const Long K = 2.0L * (rho([&](size_t i) { return B(i) * C(i); }) - q * low);
        out.push_back(static_cast<double>(K.real()));
        out.push_back(static_cast<double>(K.imag()));
      }
    }
  }
  return out;
}

Doubles spectrum(const DplrSizes& sizes, const Doubles& terms, const Doubles& step) {
  Doubles out(2 * sizes.pairs.size() * sizes.D * sizes.frequencies());
  dplr_forward(sizes, terms.data(), step.data(), out.data());
  return out;
}

// Lengths about tiles and vectors, even and odd; as many columns as one or two groups have.
TEST(Dplr, IsTheLimitFreeForm) {
  for (const auto& [n, length, inputs, outputs] :
       std::vector<std::array<size_t, 4>>{{1, 1, 1, 1},
                                          {2, 2, 1, 2},
                                          {3, 7, 2, 1},
                                          {4, 64, 3, 1},
                                          {5, 509, 1, 2},
                                          {5, 510, 5, 2},
                                          {32, 1200, 1, 1}}) {
    System s = random_system(3, n, length, inputs, outputs);
    const Doubles expected = slow_spectrum(s), terms = terms_of(s);
    for_each_target([&] {
      for (const int threads : {1, 3}) {
        s.sizes.threads = threads;
        const Doubles actual = spectrum(s.sizes, terms, s.step);
        EXPECT_LE(max_difference(actual, expected), 1e-12 * max_value(expected)) << length;
      }
    });
  }
}

TEST(Dplr, GradientMatchesFiniteDifferences) {
  for (const size_t inputs : {1, 4}) {
    System s = random_system(2, 3, 13, inputs, 2);
    const Doubles terms = terms_of(s);
    const Doubles gradient = widen(normal(slow_spectrum(s).size(), 5));
    auto loss = [&](const Doubles& t, const Doubles& step) {
      const Doubles K = spectrum(s.sizes, t, step);
      double sum = 0;
      for (size_t i = 0; i < K.size(); ++i) sum += K[i] * gradient[i];
      return sum;
    };
    auto differences = [&](Doubles at, auto&& f) {
      Doubles out;
      for (double& x : at) {
        const double old = x, h = 1e-6;
        x = old + h;
        const double plus = f(at);
        x = old - h;
        out.push_back((plus - f(at)) / (2 * h));
        x = old;
      }
      return out;
    };
    const Doubles expected = differences(terms, [&](const Doubles& t) { return loss(t, s.step); });
    const Doubles by_step = differences(s.step, [&](const Doubles& t) { return loss(terms, t); });
    for_each_target([&] {
      s.sizes.threads = 2;
      Doubles dterms(terms.size()), dstep(s.step.size());
      dplr_backward(s.sizes, terms.data(), s.step.data(), gradient.data(), dterms.data(),
                    dstep.data());
      // h² and rounding of the differences.
      EXPECT_LE(max_difference(dterms, expected), 1e-7 * max_value(expected));
      EXPECT_LE(max_difference(dstep, by_step), 1e-7 * max_value(by_step));
    });
  }
}

}  // namespace
}  // namespace rotrnn::kernels::testing
