// LRU and S5 against loops over std::complex<double> that follow the papers' recurrences and share
// nothing with the library but the parameters.

#include "tests/layers/variants.h"

namespace rotrnn::testing {
namespace {

using Complex = std::complex<double>;

// x_t = lambda x_{t-1} + B u_t, y = factor·Re(C x) + D u, in both directions if C_reverse is given.
struct Equations {
  Complexes lambda, B, C, C_reverse;
  Doubles D;
  double factor = 1;
};

Doubles numbers(const DoubleLayer& layer, const std::string& name) {
  return as<double>(layer.of(name));
}

Complexes matrix(const DoubleLayer& layer, const std::string& name) {
  return complexes(numbers(layer, name + "_re"), numbers(layer, name + "_im"));
}

Equations lru_equations(const DoubleLayer& l) {
  Equations r;
  const Doubles nu = numbers(l, "nu_log"), theta = numbers(l, "theta_log");
  const Complexes B = matrix(l, "B");
  for (size_t k = 0; k < nu.size(); ++k) {
    const Complex lambda = std::exp(Complex(-std::exp(nu[k]), std::exp(theta[k])));
    const double gamma = l.options().lru.gamma == LruGamma::fixed
                             ? std::sqrt(1 - std::norm(lambda))
                             : std::exp(numbers(l, "gamma_log")[k]);
    r.lambda.push_back(lambda);
    const size_t width = B.size() / nu.size();
    for (size_t d = 0; d < width; ++d) r.B.push_back(gamma * B[k * width + d]);
  }
  return r;
}

// (e^{ΛΔ} - 1)/Λ in long double; the steps here are not so small that a difference loses digits.
Complex zoh_input(Complex lambda, double step) {
  using Long = std::complex<long double>;
  return Complex((std::exp(Long(lambda) * static_cast<long double>(step)) - 1.0L) / Long(lambda));
}

Equations s5_equations(const DoubleLayer& l) {
  const S5Options& o = l.options().s5;
  Equations r;
  const Complexes Lambda = matrix(l, "Lambda"), B = matrix(l, "B");
  const Doubles log_step = numbers(l, "log_step");
  for (size_t k = 0; k < Lambda.size(); ++k) {
    Complex lambda = Lambda[k];
    if (o.clip && lambda.real() > -1e-4) lambda.real(-1e-4);
    const double step = o.step_rescale * std::exp(log_step[k]);
    const bool zoh = o.discretisation == Discretisation::zoh;
    r.lambda.push_back(zoh ? std::exp(lambda * step)
                           : (1.0 + step * lambda / 2.0) / (1.0 - step * lambda / 2.0));
    const Complex scale = zoh ? zoh_input(lambda, step) : step / (1.0 - step * lambda / 2.0);
    const size_t width = B.size() / Lambda.size();
    for (size_t d = 0; d < width; ++d) r.B.push_back(scale * B[k * width + d]);
  }
  r.factor = 2;
  return r;
}

Equations equations_of(const DoubleLayer& layer) {
  Equations r = layer.options().layer == "lru" ? lru_equations(layer) : s5_equations(layer);
  r.C = matrix(layer, "C");
  if (layer.options().bidirectional) r.C_reverse = matrix(layer, "C_reverse");
  r.D = numbers(layer, "D");
  return r;
}

struct Expected {
  Doubles y;
  TwinStates final;
};

Expected run(const Equations& r, const DoubleBatch& batch) {
  const size_t S = r.lambda.size(), width = r.D.size(), count = batch.offsets.size() - 1;
  Expected out{Doubles(batch.u.size()), {Doubles(count * 2 * S), {}}};
  if (!r.C_reverse.empty()) out.final.reverse.resize(count * 2 * S);
  for (size_t i = 0; i < count; ++i) {
    const auto begin = static_cast<size_t>(batch.offsets[i]);
    const auto end = static_cast<size_t>(batch.offsets[i + 1]);
    for (const bool reverse : {false, true}) {
      if (reverse && r.C_reverse.empty()) continue;
      const Doubles& start = reverse ? batch.initial.reverse : batch.initial.forward;
      Complexes x(S);
      for (size_t k = 0; k < S && !start.empty(); ++k) {
        x[k] = {start[i * 2 * S + k], start[i * 2 * S + S + k]};
      }
      for (size_t j = 0; j < end - begin; ++j) {
        const size_t t = reverse ? end - 1 - j : begin + j;
        for (size_t k = 0; k < S; ++k) {
          x[k] *= r.lambda[k];
          for (size_t d = 0; d < width; ++d) x[k] += r.B[k * width + d] * batch.u[t * width + d];
        }
        const Complexes& C = reverse ? r.C_reverse : r.C;
        for (size_t d = 0; d < width; ++d) {
          double& y = out.y[t * width + d];
          for (size_t k = 0; k < S; ++k) y += r.factor * (C[d * S + k] * x[k]).real();
          if (!reverse) y += r.D[d] * batch.u[t * width + d];
        }
      }
      Doubles& final = reverse ? out.final.reverse : out.final.forward;
      for (size_t k = 0; k < S; ++k) {
        final[i * 2 * S + k] = x[k].real();
        final[i * 2 * S + S + k] = x[k].imag();
      }
    }
  }
  return out;
}

TEST(Recurrences, OutputsAndFinalStatesAreThoseOfTheEquations) {
  int compared = 0;
  for (const Variant& v : state_variants()) {
    if (v.options.layer != "lru" && v.options.layer != "s5") continue;
    DoubleLayer layer = v.layer();
    DoubleBatch batch = noise({70, 1, 5, 130}, 3);
    for (const bool with_states : {false, true}) {
      if (with_states) batch.initial = layer.random_states(4, 21);
      const Expected expected = run(equations_of(layer), batch);
      const auto actual = layer.forward(batch);
      EXPECT_LE(relative_error(actual.y, expected.y), 1e-12) << v.name;
      EXPECT_LE(relative_error(actual.final.forward, expected.final.forward), 1e-12) << v.name;
      if (v.options.bidirectional) {
        EXPECT_LE(relative_error(actual.final.reverse, expected.final.reverse), 1e-12) << v.name;
      }
      ++compared;
    }
  }
  EXPECT_EQ(compared, 2 * 2 * 6);
}

}  // namespace
}  // namespace rotrnn::testing
