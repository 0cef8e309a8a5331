#include "rotrnn/layers/s4d/s4d.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>

#include "rotrnn/layers/initial.h"
#include "rotrnn/layers/state_space/discretise.h"
#include "rotrnn/layers/state_space/hippo.h"

namespace rotrnn {
namespace {

using Complex = std::complex<double>;

Complex at(const float* re, const float* im, size_t i) {
  return {static_cast<double>(re[i]), static_cast<double>(im[i])};
}

void add(double* re, double* im, size_t i, Complex value) {
  re[i] += value.real();
  im[i] += value.imag();
}

/// One state of one channel: where its numbers are stored, and their values.
struct S4DState {
  size_t shared;  // in [H, N]
  size_t output;  // in [D, N]
  size_t plane;   // in [N, D]
  Complex Lambda, B;
  double step;
};

/// The states of a layer, from its parameters.
struct S4DStates {
  S4DStates(const LayerOptions& options, const Views<float>& p)
      : o(options),
        N(static_cast<size_t>(o.complex_states())),
        D(static_cast<size_t>(o.width)),
        A_log_re(p["A_log_re"]),
        A_im(p["A_im"]),
        B_re(p["B_re"]),
        B_im(p["B_im"]),
        log_step(p["log_step"]) {}

  S4DState operator()(size_t d, size_t n) const {
    S4DState s{};
    s.output = d * N + n;
    s.shared = o.s4d.tied ? n : s.output;
    s.plane = n * D + d;
    s.Lambda = {-std::exp(static_cast<double>(A_log_re[s.shared])),
                static_cast<double>(A_im[s.shared])};
    s.B = at(B_re, B_im, s.shared);
    s.step = o.s4d.step_rescale * std::exp(static_cast<double>(log_step[d]));
    return s;
  }

  const LayerOptions& o;
  size_t N, D;
  const float *A_log_re, *A_im, *B_re, *B_im, *log_step;
};

/// Im Λ and B of state n at the start; Re Λ is -½ throughout.
std::pair<double, Complex> start_of(const LayerOptions& o, int64_t n) {
  const auto size = static_cast<double>(o.state), k = static_cast<double>(n);
  switch (o.s4d.init) {
    case S4DInit::lin:
      return {std::numbers::pi * k, 1};
    case S4DInit::inv:
      return {size / std::numbers::pi * (size / (2 * k + 1) - 1), 1};
    case S4DInit::legs:
      break;
  }
  const HippoBasis& h = hippo_basis(o.state);
  return {h.lambda[n].imag(), {h.B[n].real(), std::clamp(h.B[n].imag(), -2.0, 2.0)}};
}

/// A plane [N, D] as [D, N]; an empty one stays empty.
std::vector<double> by_channel(const Channel<double>& s, const std::vector<double>& plane) {
  const auto N = static_cast<size_t>(s.states), D = static_cast<size_t>(s.width);
  std::vector<double> out(plane.size());
  for (size_t i = 0; i < plane.size(); ++i) out[i % D * N + i / D] = plane[i];
  return out;
}

}  // namespace

TensorSpecs s4d_tensors(const LayerOptions& o) {
  const int64_t D = o.width, N = o.complex_states(), H = o.s4d.tied ? 1 : D;
  using enum ParameterGroup;
  TensorSpecs t;
  t.parameters = {{"A_log_re", {H, N}, recurrent}, {"A_im", {H, N}, recurrent}};
  for (const char* name : {"B_re", "B_im"}) {
    if (o.s4d.train_b) {
      t.parameters.push_back({name, {H, N}, recurrent});
    } else {
      t.buffers.push_back({name, {H, N}});
    }
  }
  t.parameters.insert(t.parameters.end(), {{"C_re", {D, N}, decay},
                                           {"C_im", {D, N}, decay},
                                           {"D", {D}, decay},
                                           {"log_step", {D}, o.s4d.dt_global ? decay : recurrent}});
  if (o.bidirectional) {
    t.parameters.push_back({"C_reverse_re", {D, N}, decay});
    t.parameters.push_back({"C_reverse_im", {D, N}, decay});
  }
  return t;
}

void draw_s4d(const LayerOptions& o, uint64_t seed, uint64_t stream, const LayerValues& out) {
  const Views<float>& p = out.tensors;
  const auto random = [&](uint64_t parameter) { return layer_random(seed, stream, parameter); };
  const int64_t N = o.complex_states(), H = o.s4d.tied ? 1 : o.width;
  for (int64_t i = 0; i < H * N; ++i) {
    const auto [frequency, B] = start_of(o, i % N);
    p["A_log_re"][i] = static_cast<float>(std::log(0.5));
    p["A_im"][i] = static_cast<float>(frequency);
    p["B_re"][i] = static_cast<float>(B.real());
    p["B_im"][i] = static_cast<float>(B.imag());
  }
  const double c_deviation = std::sqrt(0.5);
  draw_normal(p.find("C_re"), c_deviation, random(0));
  draw_normal(p.find("C_im"), c_deviation, random(1));
  draw_normal(p.find("D"), 1, random(2));
  draw_uniform(p.find("log_step"), std::log(o.s4d.dt_min), std::log(o.s4d.dt_max), random(3));
  draw_normal(p.find("C_reverse_re"), c_deviation, random(4));
  draw_normal(p.find("C_reverse_im"), c_deviation, random(5));
}

void map_s4d(const MapRequest& request, std::span<Description<double>> out, MapTrace&) {
  const LayerOptions& o = request.options;
  for (size_t i = 0; i < out.size(); ++i) {
    const Views<float>& p = request.layers[i].tensors;
    const S4DStates state(o, p);
    if (!std::holds_alternative<Channel<double>>(out[i])) out[i] = Channel<double>();
    auto& s = std::get<Channel<double>>(out[i]);
    s.width = o.width;
    s.states = o.complex_states();
    const size_t size = state.N * state.D;
    for (auto* plane : {&s.lambda_re, &s.lambda_im, &s.c_re, &s.c_im}) plane->resize(size);
    for (auto* plane : {&s.c_reverse_re, &s.c_reverse_im}) {
      plane->resize(o.bidirectional ? size : 0);
    }
    s.D.resize(state.D);
    for (size_t d = 0; d < state.D; ++d) {
      s.D[d] = static_cast<double>(p["D"][d]);
      for (size_t n = 0; n < state.N; ++n) {
        const S4DState x = state(d, n);
        const Discretised discrete = discretise(x.Lambda, x.step, o.s4d.discretisation);
        const Complex input = 2.0 * discrete.scale * x.B;
        s.lambda_re[x.plane] = discrete.lambda.real();
        s.lambda_im[x.plane] = discrete.lambda.imag();
        const Complex c = at(p["C_re"], p["C_im"], x.output) * input;
        s.c_re[x.plane] = c.real();
        s.c_im[x.plane] = c.imag();
        if (!o.bidirectional) continue;
        const Complex back = at(p["C_reverse_re"], p["C_reverse_im"], x.output) * input;
        s.c_reverse_re[x.plane] = back.real();
        s.c_reverse_im[x.plane] = back.imag();
      }
    }
  }
}

// c = C·input and input = 2·scale·B are products, so each factor's gradient is the other's
// conjugate times that of the product; discretise_backward gives those of Λ and Δ. Tied parameters
// sum over the channels.
void map_s4d_backward(const MapRequest& request, const MapTrace&,
                      std::span<const Description<double>> gradients,
                      std::span<const Views<double>> out) {
  const LayerOptions& o = request.options;
  for (size_t i = 0; i < out.size(); ++i) {
    const Views<float>& p = request.layers[i].tensors;
    const S4DStates state(o, p);
    const auto& g = std::get<Channel<double>>(gradients[i]);
    const Views<double>& dp = out[i];
    for (size_t d = 0; d < state.D; ++d) {
      dp["D"][d] += g.D[d];
      for (size_t n = 0; n < state.N; ++n) {
        const S4DState x = state(d, n);
        const Discretised discrete = discretise(x.Lambda, x.step, o.s4d.discretisation);
        const Complex input = 2.0 * discrete.scale * x.B;
        const Complex dc(g.c_re[x.plane], g.c_im[x.plane]);
        Complex dinput = std::conj(at(p["C_re"], p["C_im"], x.output)) * dc;
        add(dp["C_re"], dp["C_im"], x.output, std::conj(input) * dc);
        if (o.bidirectional) {
          const Complex back(g.c_reverse_re[x.plane], g.c_reverse_im[x.plane]);
          dinput += std::conj(at(p["C_reverse_re"], p["C_reverse_im"], x.output)) * back;
          add(dp["C_reverse_re"], dp["C_reverse_im"], x.output, std::conj(input) * back);
        }
        if (o.s4d.train_b) {
          add(dp["B_re"], dp["B_im"], x.shared, 2.0 * std::conj(discrete.scale) * dinput);
        }
        const DiscretisedGradient continuous = discretise_backward(
            x.Lambda, x.step, o.s4d.discretisation,
            {{g.lambda_re[x.plane], g.lambda_im[x.plane]}, 2.0 * std::conj(x.B) * dinput});
        dp["A_log_re"][x.shared] += continuous.Lambda.real() * x.Lambda.real();
        dp["A_im"][x.shared] += continuous.Lambda.imag();
        dp["log_step"][d] += continuous.step * x.step;
      }
    }
  }
}

Recurrence recurrence_s4d(const LayerOptions& o, const LayerValues& values, bool) {
  Description<double> mapped;
  MapTrace trace;
  map_s4d({o, {&values, 1}}, {&mapped, 1}, trace);
  const auto& s = std::get<Channel<double>>(mapped);
  ChannelSteps r;
  r.width = s.width;
  r.states = s.states;
  r.lambda_re = by_channel(s, s.lambda_re);
  r.lambda_im = by_channel(s, s.lambda_im);
  r.c_re = by_channel(s, s.c_re);
  r.c_im = by_channel(s, s.c_im);
  r.c_reverse_re = by_channel(s, s.c_reverse_re);
  r.c_reverse_im = by_channel(s, s.c_reverse_im);
  r.D = s.D;
  return r;
}

LayerStates states_s4d(const LayerOptions& o) {
  return {.count = o.width * o.complex_states()};
}

}  // namespace rotrnn
