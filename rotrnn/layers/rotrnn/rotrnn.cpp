#include "rotrnn/layers/rotrnn/rotrnn.h"

#include <cmath>

#include "rotrnn/kernels/maps/rotrnn_map.h"
#include "rotrnn/layers/initial.h"
#include "rotrnn/layers/state_space/planes.h"

namespace rotrnn {
namespace {

LayerOptions resolved(LayerOptions o) {
  o.rotrnn.init = o.rotrnn.init.resolved();
  return o;
}

const char* theta_name(const LayerOptions& o) {
  return o.rotrnn.init.theta_form == ThetaForm::log ? "theta_log" : "theta";
}

kernels::RotrnnMapSizes sizes_of(const LayerOptions& o, int threads) {
  kernels::RotrnnMapSizes sizes;
  sizes.D = static_cast<size_t>(o.width);
  sizes.N = static_cast<size_t>(o.state);
  sizes.H = static_cast<size_t>(o.rotrnn.heads);
  sizes.bidirectional = o.bidirectional;
  sizes.stationary = o.rotrnn.stationary_start;
  sizes.theta_log = o.rotrnn.init.theta_form == ThetaForm::log;
  sizes.normalisation = o.rotrnn.normalisation;
  sizes.c = o.rotrnn.c;
  sizes.threads = threads;
  return sizes;
}

kernels::RotrnnParameters<const float> parameters_of(const LayerOptions& o, const Views<float>& p) {
  return {p[theta_name(o)], p["gamma_log"], p["M"], p["B"], p["C"], p.find("C_reverse").data()};
}

}  // namespace

TensorSpecs rotrnn_tensors(const LayerOptions& options) {
  const LayerOptions o = resolved(options);
  const int64_t D = o.width, N = o.state, H = o.rotrnn.heads, dh = o.rotrnn.head_size(o.state);
  using enum ParameterGroup;
  TensorSpecs t;
  t.parameters = {{theta_name(o), {H, dh / 2}, recurrent}, {"gamma_log", {H}, recurrent}};
  if (o.rotrnn.learn_rotation) {
    t.parameters.push_back({"M", {H, dh, dh}, decay});
  } else {
    t.buffers.push_back({"M", {H, dh, dh}});
  }
  t.parameters.insert(t.parameters.end(),
                      {{"B", {H, dh, D}, recurrent}, {"C", {D, N}, decay}, {"D", {D}, decay}});
  if (o.bidirectional) t.parameters.push_back({"C_reverse", {D, N}, decay});
  return t;
}

void draw_rotrnn(const LayerOptions& options, uint64_t seed, uint64_t stream,
                 const LayerValues& out) {
  const LayerOptions o = resolved(options);
  const RotRNNInit& init = o.rotrnn.init;
  const Views<float>& p = out.tensors;
  const auto random = [&](uint64_t parameter) { return layer_random(seed, stream, parameter); };

  const std::span<float> theta = p.find(theta_name(o));
  draw(theta, random(0), [&](Random& r) { return init.theta_max * (1 - r.uniform()); });
  if (init.theta_form == ThetaForm::log) {
    for (float& angle : theta) angle = std::log(angle);
  }
  const double low = init.gamma_min, high = init.gamma_max;
  draw(p.find("gamma_log"), random(1), [&](Random& r) {
    const double u = 1 - r.uniform();
    if (init.gamma_init == GammaInit::ring) {
      return std::log(-0.5 * std::log(u * (high * high - low * low) + low * low));
    }
    return std::lerp(std::log(-std::log(high)), std::log(-std::log(low)), u);
  });

  const auto width = static_cast<double>(o.width), N = static_cast<double>(o.state);
  const bool by_fan_in = init.bc_init == MatrixInit::paper;
  const double both = 1 / std::sqrt(width + N);
  const double b = by_fan_in ? 1 / std::sqrt(width) : both;
  const double c = by_fan_in ? 1 / std::sqrt(N) : both;
  const double m = init.m_init == MatrixInit::paper
                       ? 1
                       : 1 / std::sqrt(N + static_cast<double>(o.rotrnn.head_size(o.state)));
  draw_normal(p.find("M"), o.rotrnn.learn_rotation ? m : 0, random(2));  // 0: P = I
  draw_normal(p.find("B"), b, random(3));
  draw_normal(p.find("C"), c, random(4));
  draw_normal(p.find("D"), 1, random(5));
  draw_normal(p.find("C_reverse"), c, random(6));
}

void map_rotrnn(const MapRequest& request, std::span<Description<double>> out, MapTrace& trace) {
  const LayerOptions o = resolved(request.options);
  const kernels::RotrnnMapSizes sizes = sizes_of(o, request.threads);
  const size_t rotations = sizes.N * sizes.head(), S = sizes.S();
  trace.resize(out.size() * rotations);
  std::vector<kernels::RotrnnForward<double, float>> jobs;
  for (size_t i = 0; i < out.size(); ++i) {
    const Views<float>& p = request.layers[i].tensors;
    Diagonal<double>& s = make_diagonal(out[i], o.width, static_cast<int64_t>(S), o.bidirectional);
    for (auto* start : {&s.start_re, &s.start_im}) start->resize(o.rotrnn.stationary_start ? S : 0);
    for (size_t d = 0; d < sizes.D; ++d) s.D[d] = static_cast<double>(p["D"][d]);
    jobs.push_back({parameters_of(o, p), {}, trace.data() + i * rotations});
    point_to(s, jobs.back().layer);
  }
  kernels::rotrnn_map_forward<double, float>(sizes, jobs);
}

// The kernel overwrites, so it writes into buffers, which are then added to the gradients.
void map_rotrnn_backward(const MapRequest& request, const MapTrace& trace,
                         std::span<const Description<double>> gradients,
                         std::span<const Views<double>> out) {
  const LayerOptions o = resolved(request.options);
  const kernels::RotrnnMapSizes sizes = sizes_of(o, request.threads);
  const char* names[] = {theta_name(o), "gamma_log", "M", "B", "C", "C_reverse"};
  std::vector<std::vector<double>> partial;
  std::vector<kernels::RotrnnBackward<double, float>> jobs;
  for (size_t i = 0; i < out.size(); ++i) {
    const Views<float>& p = request.layers[i].tensors;
    const auto& g = std::get<Diagonal<double>>(gradients[i]);
    double* to[std::size(names)];
    for (size_t k = 0; k < std::size(names); ++k) {
      partial.emplace_back(p.find(names[k]).size());
      to[k] = partial.back().data();
    }
    jobs.push_back({parameters_of(o, p),
                    trace.data() + i * sizes.N * sizes.head(),
                    {},
                    {to[0], to[1], to[2], to[3], to[4], to[5]}});
    point_to(g, jobs.back().dlayer);
  }
  kernels::rotrnn_map_backward<double, float>(sizes, jobs);
  for (size_t i = 0; i < out.size(); ++i) {
    const auto& g = std::get<Diagonal<double>>(gradients[i]);
    for (size_t k = 0; k < std::size(names); ++k) {
      const std::span<double> sum = out[i].find(names[k]);
      const std::vector<double>& part = partial[i * std::size(names) + k];
      for (size_t j = 0; j < sum.size(); ++j) sum[j] += part[j];
    }
    for (size_t d = 0; d < sizes.D; ++d) out[i]["D"][d] += g.D[d];
  }
}

Recurrence recurrence_rotrnn(const LayerOptions& options, const LayerValues& values, bool) {
  return mapped_diagonal(map_rotrnn, options, values);
}

// A head: ‖x_h‖ = ‖P_hᵀ x_h‖ = ‖z_h‖.
LayerStates states_rotrnn(const LayerOptions& options) {
  const int64_t pairs = (options.rotrnn.head_size(options.state) + 1) / 2;
  return {.count = options.rotrnn.heads * pairs, .groups = options.rotrnn.heads};
}

}  // namespace rotrnn
