// LRU, S5, S4D, S4 and Liquid-S4 against numbers made by tests/golden/, which know only the
// equations.

#include "tests/layers/golden.h"
#include "rotrnn/layers/state_space/discretise.h"

namespace rotrnn::testing {
namespace {

using Complex = std::complex<double>;
using Name = std::pair<std::string, std::string>;  // layer, case

// What the states of a script and those of a layer have to do with each other, z = x/s. The kernels
// of S4D divide a state by its B̄, and have states as [N, D] where the scripts have [D, N].
class Scale {
 public:
  explicit Scale(const DoubleLayer& layer) : layer_(layer) {
    if (!layer.kind().channels || layer.state_size() == 0) return;
    for (size_t d = 0; d < D(); ++d) {
      for (size_t n = 0; n < N(); ++n) {
        s_.push_back(discretise(Lambda(d, n), step(d), rule()).scale * B(d, n));
      }
    }
  }

  /// x to z.
  Doubles divided(const Doubles& x) const {
    return turned(x, true, [](Complex value, Complex s) { return value / s; });
  }
  /// z to x.
  Doubles times(const Doubles& z) const {
    return turned(z, false, [](Complex value, Complex s) { return value * s; });
  }
  /// The gradient of x = s·z to that of z, and of z = x/s to that of x.
  Doubles gradient_of_z(const Doubles& dx) const {
    return turned(dx, true, [](Complex value, Complex s) { return value * std::conj(s); });
  }
  Doubles gradient_of_x(const Doubles& dz) const {
    return turned(dz, false, [](Complex value, Complex s) { return value / std::conj(s); });
  }

  /// Adds to the gradients of the layer what comes by way of s: of x = s·z it is conj(z)·dx; of
  /// z = x/s, with sign -1, conj(-x/s²)·dz = -conj(z)·dx.
  void add_gradient(const Doubles& x, const Doubles& dx, double sign) const {
    if (s_.empty()) return;
    for (size_t i = 0; i < x.size(); ++i) {
      const size_t plane = s_.size(), k = i % plane;
      if (i / plane % 2 == 1) continue;  // imaginary parts go with the real ones
      const Complex z = Complex(x[i], x[i + plane]) / s_[k];
      add(k / N(), k % N(), sign * std::conj(z) * Complex(dx[i], dx[i + plane]));
    }
  }

 private:
  size_t D() const { return static_cast<size_t>(layer_.options().width); }
  size_t N() const { return static_cast<size_t>(layer_.options().complex_states()); }
  Discretisation rule() const { return layer_.options().s4d.discretisation; }
  size_t own(size_t d, size_t n) const { return layer_.options().s4d.tied ? n : d * N() + n; }
  double value(const char* name, size_t i) const { return static_cast<double>(layer_.of(name)[i]); }
  Complex Lambda(size_t d, size_t n) const {
    return {-std::exp(value("A_log_re", own(d, n))), value("A_im", own(d, n))};
  }
  Complex B(size_t d, size_t n) const {
    return {value("B_re", own(d, n)), value("B_im", own(d, n))};
  }
  double step(size_t d) const {
    return layer_.options().s4d.step_rescale * std::exp(value("log_step", d));
  }

  // s = scale(Λ, Δ)·B.
  void add(size_t d, size_t n, Complex ds) const {
    const size_t i = own(d, n);
    const Complex scale = discretise(Lambda(d, n), step(d), rule()).scale;
    const Complex dB = std::conj(scale) * ds;
    layer_.gradient("B_re")[i] += dB.real();
    layer_.gradient("B_im")[i] += dB.imag();
    const auto g = discretise_backward(Lambda(d, n), step(d), rule(), {0, std::conj(B(d, n)) * ds});
    layer_.gradient("A_log_re")[i] += g.Lambda.real() * Lambda(d, n).real();
    layer_.gradient("A_im")[i] += g.Lambda.imag();
    layer_.gradient("log_step")[d] += g.step * step(d);
  }

  // f(value, s) of every state, from [D, N] to the kernels' [N, D] or back.
  template <class F>
  Doubles turned(const Doubles& states, bool to_kernels, const F& f) const {
    if (s_.empty()) return states;
    Doubles out(states.size());
    const size_t plane = s_.size();
    for (size_t i = 0; i < states.size(); i += 2 * plane) {
      for (size_t k = 0; k < plane; ++k) {
        const size_t kernel = i + k % N() * D() + k / N(), script = i + k;
        const size_t from = to_kernels ? script : kernel, to = to_kernels ? kernel : script;
        const Complex value = f({states[from], states[from + plane]}, s_[k]);
        out[to] = value.real();
        out[to + plane] = value.imag();
      }
    }
    return out;
  }

  const DoubleLayer& layer_;
  Complexes s_;  // [D, N]; empty: 1
};

class GoldenLayer : public ::testing::TestWithParam<Name> {};

TEST_P(GoldenLayer, OutputsAndGradientsAreThoseOfTheEquations) {
  GoldenCase g(GetParam().first, golden(GetParam().first).at("cases").at(GetParam().second));
  const Scale scale(g.layer);
  g.batch.initial = {scale.divided(g.input("x_0")), scale.divided(g.input("x_0_reverse"))};
  const auto out = g.layer.forward(g.batch);
  size_t outputs = 1;  // the loss
  const auto output = [&](const char* name, const Doubles& actual) {
    if (!g.has_output(name)) return;
    EXPECT_LE(relative_error(actual, g.output(name)), kGolden) << name;
    ++outputs;
  };
  const TwinStates final{scale.times(out.final.forward), scale.times(out.final.reverse)};
  output("y", out.y);
  output("x_T", final.forward);
  output("x_T_reverse", final.reverse);
  EXPECT_EQ(outputs, g.c.at("outputs").size());

  const TwinStates dfinal{g.input("G_T"), g.input("G_T_reverse")};
  const auto back =
      g.layer.backward(g.batch, g.input("G"),
                       {scale.gradient_of_z(dfinal.forward), scale.gradient_of_z(dfinal.reverse)});
  const TwinStates dinitial{scale.gradient_of_x(back.initial.forward),
                            scale.gradient_of_x(back.initial.reverse)};
  scale.add_gradient(g.output("x_T"), dfinal.forward, 1);
  scale.add_gradient(g.output("x_T_reverse"), dfinal.reverse, 1);
  scale.add_gradient(g.input("x_0"), dinitial.forward, -1);
  scale.add_gradient(g.input("x_0_reverse"), dinitial.reverse, -1);

  const auto& expected = g.c.at("gradients");
  size_t gradients = 0;
  const auto gradient = [&](const std::string& name, const auto& actual) {
    if (actual.empty()) return;
    EXPECT_LE(relative_error(actual, array(expected, name)), kGolden) << name;
    ++gradients;
  };
  for (const auto& [name, values] : g.layer.gradients()) gradient(name, values);
  gradient("u", back.u);
  gradient("x_0", dinitial.forward);
  gradient("x_0_reverse", dinitial.reverse);
  EXPECT_EQ(gradients, expected.size());
}

std::vector<Name> case_names() {
  std::vector<Name> names;
  for (const char* layer : {"lru", "s5", "s4d", "s4", "liquid_s4"}) {
    for (const auto& item : golden(layer).at("cases").items()) {
      names.emplace_back(layer, item.key());
    }
  }
  return names;
}

INSTANTIATE_TEST_SUITE_P(Cases, GoldenLayer, ::testing::ValuesIn(case_names()),
                         [](const auto& info) {
                           return info.param.first + "_" + info.param.second;
                         });

}  // namespace
}  // namespace rotrnn::testing
