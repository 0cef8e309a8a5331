#include "rotrnn/layers/s4/s4.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "rotrnn/layers/initial.h"
#include "rotrnn/layers/s4/system.h"
#include "rotrnn/layers/state_space/hippo.h"

namespace rotrnn {
namespace {

using Complex = std::complex<double>;

constexpr double kLargestImaginary = 2;  // of Im B

// Two planes [H, n] as complex numbers of all channels.
ComplexRows join(const LayerValues& values, const char* re, const char* im, const LayerOptions& o) {
  const float *a = values.tensors[re], *b = values.tensors[im];
  const auto n = static_cast<size_t>(o.complex_states());
  const bool one = values.tensors.find(re).size() == n;  // for all channels
  ComplexRows out(o.width, o.complex_states());
  for (int64_t d = 0; d < o.width; ++d) {
    for (size_t i = 0; i < n; ++i) {
      const size_t at = (one ? 0 : static_cast<size_t>(d) * n) + i;
      out(d, static_cast<int64_t>(i)) = Complex(a[at], b[at]);
    }
  }
  return out;
}

// Its adjoint, which sums over the channels where there is one row for all.
void add_parts(const ComplexRows& gradient, const char* re, const char* im,
               const Views<double>& out) {
  double *a = out[re], *b = out[im];
  const auto n = static_cast<size_t>(gradient.cols());
  const bool one = out.find(re).size() == n;
  for (int64_t d = 0; d < gradient.rows(); ++d) {
    for (size_t i = 0; i < n; ++i) {
      const size_t at = (one ? 0 : static_cast<size_t>(d) * n) + i;
      a[at] += gradient(d, static_cast<int64_t>(i)).real();
      b[at] += gradient(d, static_cast<int64_t>(i)).imag();
    }
  }
}

void store_parts(const ComplexRows& rows, const char* re, const char* im,
                 const LayerValues& values) {
  float *a = values.tensors[re], *b = values.tensors[im];
  for (int64_t i = 0; i < rows.size(); ++i) {
    a[i] = static_cast<float>(rows.data()[i].real());
    b[i] = static_cast<float>(rows.data()[i].imag());
  }
}

// `rows` [n] in every row of a plane.
void fill_rows(const Eigen::VectorXd& row, std::span<float> out) {
  for (size_t i = 0; i < out.size(); ++i) {
    out[i] = static_cast<float>(row[static_cast<int64_t>(i) % row.size()]);
  }
}

std::vector<double> parts(const ComplexRows& rows, bool imaginary) {
  std::vector<double> out;
  for (int64_t i = 0; i < rows.size(); ++i) {
    out.push_back(imaginary ? rows.data()[i].imag() : rows.data()[i].real());
  }
  return out;
}

}  // namespace

TensorSpecs s4_tensors(const LayerOptions& o) {
  const std::vector<int64_t> plane{o.width, o.complex_states()}, channel{o.width};
  const std::vector<int64_t> shared{o.s4.tied ? 1 : o.width, o.complex_states()};
  TensorSpecs specs;
  for (const char* name : {"A_log_re", "A_im", "P_re", "P_im", "B_re", "B_im"}) {
    specs.parameters.push_back({name, shared, ParameterGroup::recurrent});
  }
  specs.parameters.push_back({"C_re", plane, ParameterGroup::decay});
  specs.parameters.push_back({"C_im", plane, ParameterGroup::decay});
  specs.parameters.push_back({"D", channel, ParameterGroup::decay});
  specs.parameters.push_back(
      {"log_step", channel, o.s4.dt_global ? ParameterGroup::decay : ParameterGroup::recurrent});
  if (o.bidirectional) {
    specs.parameters.push_back({"C_reverse_re", plane, ParameterGroup::decay});
    specs.parameters.push_back({"C_reverse_im", plane, ParameterGroup::decay});
  }
  specs.buffers.push_back({"length", {}, /*integer=*/true});
  return specs;
}

void draw_s4(const LayerOptions& o, uint64_t seed, uint64_t stream, const LayerValues& out) {
  draw_s4_values(o, seed, stream, out, /*clip=*/true);
}

void draw_s4_values(const LayerOptions& o, uint64_t seed, uint64_t stream, const LayerValues& out,
                    bool clip) {
  const auto& t = out.tensors;
  const HippoBasis& h = hippo_basis(o.state);
  const Eigen::VectorXd b_im = h.B.imag();
  for (float& value : t.find("A_log_re")) value = static_cast<float>(std::log(0.5));
  fill_rows(h.lambda.imag(), t.find("A_im"));
  fill_rows(h.P.real(), t.find("P_re"));
  fill_rows(h.P.imag(), t.find("P_im"));
  fill_rows(h.B.real(), t.find("B_re"));
  fill_rows(clip ? b_im.cwiseMax(-kLargestImaginary).cwiseMin(kLargestImaginary) : b_im,
            t.find("B_im"));
  const double c_deviation = std::sqrt(0.5);
  const auto random = [&](uint64_t parameter) { return layer_random(seed, stream, parameter); };
  draw_normal(t.find("C_re"), c_deviation, random(0));
  draw_normal(t.find("C_im"), c_deviation, random(1));
  draw_normal(t.find("D"), 1, random(2));
  draw_uniform(t.find("log_step"), std::log(o.s4.dt_min), std::log(o.s4.dt_max), random(3));
  if (o.bidirectional) {
    draw_normal(t.find("C_reverse_re"), c_deviation, random(4));
    draw_normal(t.find("C_reverse_im"), c_deviation, random(5));
  }
  *out.integers["length"] = 0;
  if (o.s4.max_length > 0) prepare_s4(o, out, o.s4.max_length);
}

int64_t s4_length(const LayerValues& values) {
  constexpr int64_t kMost = int64_t{1} << 31;
  const int64_t L = *values.integers["length"];
  if (L < 0 || L > kMost) {
    throw std::runtime_error(
        fmt::format("S4: the weights are damaged: a kernel of {} steps is impossible", L));
  }
  return L;
}

void prepare_s4(const LayerOptions& o, const LayerValues& values, int64_t longest) {
  int64_t L = s4_length(values);
  if (L >= longest) return;
  const S4System s = s4_system(o, values);
  std::vector<ComplexRows> C = s.vectors.outputs;
  const auto add = [&](double sign, int64_t length) {
    const std::vector<ComplexRows> moved = times_power(s.dplr, C, length);
    for (size_t i = 0; i < C.size(); ++i) C[i] += sign * moved[i];
  };
  if (L == 0) {
    add(-1, longest);
    L = longest;
  }
  for (; L < longest; L *= 2) add(1, L);
  store_parts(C[0], "C_re", "C_im", values);
  if (C.size() > 1) store_parts(C[1], "C_reverse_re", "C_reverse_im", values);
  *values.integers["length"] = L;
}

// ---------------------------------------------------------------------------------------- the map

S4System s4_system(const LayerOptions& o, const LayerValues& values) {
  S4System s;
  s.dplr.Lambda = join(values, "A_log_re", "A_im", o);
  for (int64_t i = 0; i < s.dplr.Lambda.size(); ++i) {
    Complex& x = s.dplr.Lambda.data()[i];
    x = {-std::exp(x.real()), x.imag()};
  }
  s.dplr.P = join(values, "P_re", "P_im", o);
  s.dplr.step = Eigen::Map<const Eigen::ArrayXf>(values.tensors["log_step"], o.width)
                    .cast<double>()
                    .unaryExpr([](double x) { return std::exp(x); });
  s.vectors.inputs = {join(values, "B_re", "B_im", o)};
  s.vectors.outputs = {join(values, "C_re", "C_im", o)};
  s.vectors.pairs = {{0, 0}};
  if (o.bidirectional) {
    s.vectors.outputs.push_back(join(values, "C_reverse_re", "C_reverse_im", o));
    s.vectors.pairs.emplace_back(0, 1);
  }
  s.length = s4_length(values);
  return s;
}

// Re Λ and Δ are exponentials, which are their own slopes.
void s4_system_backward(const LayerOptions& o, const S4System& s, const DplrMatrix& dplr,
                        const DplrVectors& vectors, const Views<double>& out) {
  ComplexRows rate = dplr.Lambda;
  for (int64_t i = 0; i < rate.size(); ++i) {
    Complex& x = rate.data()[i];
    x = {x.real() * s.dplr.Lambda.data()[i].real(), x.imag()};
  }
  add_parts(rate, "A_log_re", "A_im", out);
  add_parts(dplr.P, "P_re", "P_im", out);
  add_parts(vectors.inputs[0], "B_re", "B_im", out);
  add_parts(vectors.outputs[0], "C_re", "C_im", out);
  if (o.bidirectional) add_parts(vectors.outputs[1], "C_reverse_re", "C_reverse_im", out);
  Eigen::Map<Eigen::ArrayXd>(out["log_step"], o.width) += dplr.step * s.dplr.step;
}

Channel<double>& s4_channel(const LayerOptions& o, const LayerValues& values,
                            Description<double>& out) {
  const int64_t L = s4_length(values);
  if (L == 0)
    throw std::invalid_argument("S4: its kernel has no length yet; prepare() gives it one");
  if (!std::holds_alternative<Channel<double>>(out)) out = Channel<double>();
  auto& channel = std::get<Channel<double>>(out);  // whose memory may be of the step before
  channel.width = o.width;
  channel.length = L;
  channel.K.resize(static_cast<size_t>(L * o.width));
  channel.K_reverse.resize(o.bidirectional ? channel.K.size() : 0);
  const std::span<float> D = values.tensors.find("D");
  channel.D.assign(D.begin(), D.end());
  return channel;
}

std::vector<DplrKernel> s4_kernels(Channel<double>& channel) {
  std::vector<DplrKernel> out{{.K = channel.K.data()}};
  if (channel.bidirectional()) out.push_back({.K = channel.K_reverse.data()});
  return out;
}

std::vector<DplrKernelGradient> s4_kernel_gradients(const Channel<double>& gradient) {
  std::vector<DplrKernelGradient> out{{.K = gradient.K.data()}};
  if (gradient.bidirectional()) out.push_back({.K = gradient.K_reverse.data()});
  return out;
}

DplrVectors zero_vectors(const DplrVectors& like) {
  DplrVectors out;
  for (const ComplexRows& B : like.inputs) {
    out.inputs.push_back(ComplexRows::Zero(B.rows(), B.cols()));
  }
  for (const ComplexRows& C : like.outputs) {
    out.outputs.push_back(ComplexRows::Zero(C.rows(), C.cols()));
  }
  return out;
}

void map_s4(const MapRequest& request, std::span<Description<double>> out, MapTrace&) {
  const LayerOptions& o = request.options;
  for (size_t i = 0; i < out.size(); ++i) {
    Channel<double>& channel = s4_channel(o, request.layers[i], out[i]);
    const S4System s = s4_system(o, request.layers[i]);
    dplr_kernels(s.dplr, s.vectors, s.length, request.threads, s4_kernels(channel));
  }
}

void map_s4_backward(const MapRequest& request, const MapTrace&,
                     std::span<const Description<double>> gradients,
                     std::span<const Views<double>> out) {
  const LayerOptions& o = request.options;
  for (size_t i = 0; i < out.size(); ++i) {
    const auto& gradient = std::get<Channel<double>>(gradients[i]);
    const S4System s = s4_system(o, request.layers[i]);
    DplrMatrix dplr = DplrMatrix::zeros(o.width, o.complex_states());
    DplrVectors vectors = zero_vectors(s.vectors);
    dplr_kernels_backward(s.dplr, s.vectors, s.length, request.threads,
                          s4_kernel_gradients(gradient), dplr, vectors);
    s4_system_backward(o, s, dplr, vectors, out[i]);
    Eigen::Map<Eigen::ArrayXd>(out[i]["D"], o.width) +=
        Eigen::Map<const Eigen::ArrayXd>(gradient.D.data(), o.width);
  }
}

// ------------------------------------------------------------------------------------ step by step

Recurrence recurrence_s4(const LayerOptions& o, const LayerValues& values, bool outputs) {
  const S4System s = s4_system(o, values);
  const DiscreteDplr step = discretise(s.dplr);
  const ComplexRows B_bar = discrete_input(s.dplr, s.vectors.inputs[0]);
  ChannelSteps r;
  r.width = o.width;
  r.states = o.complex_states();
  const auto set = [](std::vector<double>& re, std::vector<double>& im, const ComplexRows& rows) {
    re = parts(rows, false);
    im = parts(rows, true);
  };
  set(r.lambda_re, r.lambda_im, step.lambda);
  set(r.p_re, r.p_im, -step.F);
  set(r.q_re, r.q_im, 2 * step.G);
  set(r.b_re, r.b_im, B_bar);
  if (outputs) {
    const std::vector<ComplexRows> C =
        s.length == 0 ? s.vectors.outputs : plain_output(s.dplr, s.vectors.outputs, s.length);
    set(r.c_re, r.c_im, 2 * C[0]);
    if (o.bidirectional) set(r.c_reverse_re, r.c_reverse_im, 2 * C[1]);
  }
  const std::span<float> D = values.tensors.find("D");
  r.D.assign(D.begin(), D.end());
  return r;
}

LayerStates states_s4(const LayerOptions&) {
  return {};
}

}  // namespace rotrnn
