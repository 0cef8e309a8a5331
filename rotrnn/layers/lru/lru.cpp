#include "rotrnn/layers/lru/lru.h"

#include <cmath>

#include "rotrnn/layers/initial.h"
#include "rotrnn/layers/state_space/planes.h"

namespace rotrnn {
namespace {

// A state's numbers, from its parameters.
struct LruState {
  double nu, radius, angle;
  double scale;  // of its input
};

LruState state_of(const LayerOptions& o, const Views<float>& p, size_t j) {
  LruState s{};
  s.nu = std::exp(static_cast<double>(p["nu_log"][j]));
  s.radius = std::exp(-s.nu);
  s.angle = std::exp(static_cast<double>(p["theta_log"][j]));
  // 1 - |λ|² by expm1: the difference would lose its digits when |λ| is near 1.
  s.scale = o.lru.gamma == LruGamma::learned ? std::exp(static_cast<double>(p["gamma_log"][j]))
                                             : std::sqrt(-std::expm1(-2 * s.nu));
  return s;
}

}  // namespace

TensorSpecs lru_tensors(const LayerOptions& o) {
  const int64_t D = o.width, S = o.complex_states();
  using enum ParameterGroup;
  TensorSpecs t;
  t.parameters = {{"nu_log", {S}, recurrent}, {"theta_log", {S}, recurrent}};
  if (o.lru.gamma == LruGamma::learned) t.parameters.push_back({"gamma_log", {S}, recurrent});
  t.parameters.insert(t.parameters.end(), {{"B_re", {S, D}, recurrent},
                                           {"B_im", {S, D}, recurrent},
                                           {"C_re", {D, S}, decay},
                                           {"C_im", {D, S}, decay},
                                           {"D", {D}, decay}});
  if (o.bidirectional) {
    t.parameters.push_back({"C_reverse_re", {D, S}, decay});
    t.parameters.push_back({"C_reverse_im", {D, S}, decay});
  }
  return t;
}

void draw_lru(const LayerOptions& o, uint64_t seed, uint64_t stream, const LayerValues& out) {
  const auto random = [&](uint64_t parameter) { return layer_random(seed, stream, parameter); };
  const Views<float>& p = out.tensors;
  const double low = o.lru.r_min * o.lru.r_min, high = o.lru.r_max * o.lru.r_max;
  std::vector<double> square(static_cast<size_t>(o.complex_states())), phase(square.size());
  draw_uniform<double>(square, low, high, random(0));
  draw_uniform<double>(phase, 0, o.lru.max_phase, random(1));
  for (size_t j = 0; j < square.size(); ++j) {
    const double nu = -0.5 * std::log(square[j]);
    p["nu_log"][j] = static_cast<float>(std::log(nu));
    p["theta_log"][j] = static_cast<float>(std::log(phase[j]));
    if (o.lru.gamma == LruGamma::fixed) continue;
    p["gamma_log"][j] = static_cast<float>(0.5 * std::log(-std::expm1(-2 * nu)));
  }
  const double b = std::sqrt(0.5 / static_cast<double>(o.width));
  const double c = std::sqrt(1 / static_cast<double>(o.complex_states()));
  draw_normal(p.find("B_re"), b, random(2));
  draw_normal(p.find("B_im"), b, random(3));
  draw_normal(p.find("C_re"), c, random(4));
  draw_normal(p.find("C_im"), c, random(5));
  draw_normal(p.find("D"), 1, random(6));
  draw_normal(p.find("C_reverse_re"), c, random(7));
  draw_normal(p.find("C_reverse_im"), c, random(8));
}

void map_lru(const MapRequest& request, std::span<Description<double>> out, MapTrace&) {
  const LayerOptions& o = request.options;
  const auto D = static_cast<size_t>(o.width), S = static_cast<size_t>(o.complex_states());
  for (size_t i = 0; i < out.size(); ++i) {
    const Views<float>& p = request.layers[i].tensors;
    Diagonal<double>& s = make_diagonal(out[i], o.width, o.complex_states(), o.bidirectional);
    for (size_t j = 0; j < S; ++j) {
      const LruState state = state_of(o, p, j);
      s.lambda_re[j] = state.radius * std::cos(state.angle);
      s.lambda_im[j] = state.radius * std::sin(state.angle);
      for (size_t d = 0; d < D; ++d) {
        s.W[j * D + d] = state.scale * static_cast<double>(p["B_re"][j * D + d]);
        s.W[(S + j) * D + d] = state.scale * static_cast<double>(p["B_im"][j * D + d]);
      }
    }
    read_out(p, 1, s);
  }
}

// With g the input's scale: W = g·B gives dB = g·dW and dg = dW·B; λ = r·e^{ia} gives
// dr = Re(e^{-ia}dλ) and da = r·Im(e^{-ia}dλ); then r = e^{-ν}, and g = e^{gamma_log} or
// √(1 - e^{-2ν}), whose slope is e^{-2ν}/g.
void map_lru_backward(const MapRequest& request, const MapTrace&,
                      std::span<const Description<double>> gradients,
                      std::span<const Views<double>> out) {
  const LayerOptions& o = request.options;
  const auto D = static_cast<size_t>(o.width), S = static_cast<size_t>(o.complex_states());
  for (size_t i = 0; i < out.size(); ++i) {
    const Views<float>& p = request.layers[i].tensors;
    const auto& g = std::get<Diagonal<double>>(gradients[i]);
    const Views<double>& dp = out[i];
    for (size_t j = 0; j < S; ++j) {
      const LruState state = state_of(o, p, j);
      double scale = 0;
      for (size_t d = 0; d < D; ++d) {
        const double re = g.W[j * D + d], im = g.W[(S + j) * D + d];
        scale += re * static_cast<double>(p["B_re"][j * D + d]) +
                 im * static_cast<double>(p["B_im"][j * D + d]);
        dp["B_re"][j * D + d] += state.scale * re;
        dp["B_im"][j * D + d] += state.scale * im;
      }
      const double c = std::cos(state.angle), sn = std::sin(state.angle);
      const double radius = g.lambda_re[j] * c + g.lambda_im[j] * sn;
      const double angle = state.radius * (g.lambda_im[j] * c - g.lambda_re[j] * sn);
      double nu = -state.radius * radius;
      if (o.lru.gamma == LruGamma::learned) {
        dp["gamma_log"][j] += scale * state.scale;
      } else {
        nu += scale * state.radius * state.radius / state.scale;
      }
      dp["nu_log"][j] += nu * state.nu;
      dp["theta_log"][j] += angle * state.angle;
    }
    read_out_backward(g, 1, dp);
  }
}

Recurrence recurrence_lru(const LayerOptions& o, const LayerValues& values, bool) {
  return mapped_diagonal(map_lru, o, values);
}

LayerStates states_lru(const LayerOptions& o) {
  return {.count = o.complex_states()};
}

}  // namespace rotrnn
