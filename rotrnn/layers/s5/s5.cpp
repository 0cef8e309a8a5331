#include "rotrnn/layers/s5/s5.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>

#include "rotrnn/layers/initial.h"
#include "rotrnn/layers/state_space/discretise.h"
#include "rotrnn/layers/state_space/hippo.h"
#include "rotrnn/layers/state_space/planes.h"

namespace rotrnn {
namespace {

using Complex = std::complex<double>;
using RowMatrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

constexpr double kLargestReal = -1e-4;  // Re Λ at most, with clip

struct S5State {
  Complex Lambda;
  double step;
};

S5State continuous(const LayerOptions& o, const Views<float>& p, size_t j) {
  const auto re = static_cast<double>(p["Lambda_re"][j]);
  return {{o.s5.clip ? std::min(re, kLargestReal) : re, static_cast<double>(p["Lambda_im"][j])},
          o.s5.step_rescale * std::exp(static_cast<double>(p["log_step"][j]))};
}

RowMatrix truncated_normal(int64_t rows, int64_t columns, double standard_deviation,
                           Random random) {
  RowMatrix m(rows, columns);
  draw_truncated_normal(std::span(m.data(), static_cast<size_t>(m.size())), standard_deviation,
                        random);
  return m;
}

// HiPPO's eigenvectors in `blocks` blocks: [P, P/2].
Eigen::MatrixXcd basis(const LayerOptions& o) {
  const int64_t size = o.state / o.s5.blocks;
  Eigen::MatrixXcd V = Eigen::MatrixXcd::Zero(o.state, o.state / 2);
  for (int64_t b = 0; b < o.s5.blocks; ++b) {
    V.block(b * size, b * size / 2, size, size / 2) = hippo_basis(size).V;
  }
  return V;
}

// Writes a complex matrix row by row into its two parts.
void split(const Eigen::MatrixXcd& m, std::span<float> re, std::span<float> im) {
  size_t at = 0;
  for (Eigen::Index i = 0; i < m.rows(); ++i) {
    for (Eigen::Index j = 0; j < m.cols(); ++j, ++at) {
      re[at] = static_cast<float>(m(i, j).real());
      im[at] = static_cast<float>(m(i, j).imag());
    }
  }
}

// C [D, P/2] at the start, from the streams `first` and `first` + 1.
Eigen::MatrixXcd draw_C(const LayerOptions& o, const Eigen::MatrixXcd& V, uint64_t seed,
                        uint64_t stream, uint64_t first) {
  const auto rows = static_cast<double>(o.state), columns = static_cast<double>(o.width);
  const auto random = [&](uint64_t k) { return layer_random(seed, stream, first + k); };
  const Complex i(0, 1);
  if (o.s5.c_init == S5CInit::complex_normal) {
    RowMatrix re(o.width, o.state / 2), im(o.width, o.state / 2);
    const auto size = static_cast<size_t>(re.size());
    draw_normal(std::span(re.data(), size), std::sqrt(0.5), random(0));
    draw_normal(std::span(im.data(), size), std::sqrt(0.5), random(1));
    return re.cast<Complex>() + i * im.cast<Complex>();
  }
  const double standard_deviation =
      1 / std::sqrt(o.s5.c_init == S5CInit::lecun_normal ? rows * columns : rows);
  const RowMatrix re = truncated_normal(o.width, o.state, standard_deviation, random(0));
  const RowMatrix im = truncated_normal(o.width, o.state, standard_deviation, random(1));
  return (re.cast<Complex>() + i * im.cast<Complex>()) * V;
}

}  // namespace

TensorSpecs s5_tensors(const LayerOptions& o) {
  const int64_t D = o.width, S = o.complex_states();
  using enum ParameterGroup;
  const ParameterGroup b = o.s5.groups == S5Groups::b_and_c_decay        ? recurrent_decay
                           : o.s5.groups == S5Groups::b_fast_and_c_decay ? decay
                                                                         : recurrent;
  const ParameterGroup c = o.s5.groups == S5Groups::no_bc_decay ? recurrent : decay;
  TensorSpecs t;
  t.parameters = {{"Lambda_re", {S}, recurrent},
                  {"Lambda_im", {S}, recurrent},
                  {"B_re", {S, D}, b},
                  {"B_im", {S, D}, b},
                  {"C_re", {D, S}, c},
                  {"C_im", {D, S}, c},
                  {"D", {D}, c},
                  {"log_step", {S}, o.s5.dt_global ? decay : recurrent}};
  if (o.bidirectional) {
    t.parameters.push_back({"C_reverse_re", {D, S}, c});
    t.parameters.push_back({"C_reverse_im", {D, S}, c});
  }
  return t;
}

void draw_s5(const LayerOptions& o, uint64_t seed, uint64_t stream, const LayerValues& out) {
  const Views<float>& p = out.tensors;
  const HippoBasis& hippo = hippo_basis(o.state / o.s5.blocks);
  const Eigen::MatrixXcd V = basis(o);
  split(hippo.lambda.replicate(o.s5.blocks, 1), p.find("Lambda_re"), p.find("Lambda_im"));
  const RowMatrix B = truncated_normal(
      o.state, o.width, 1 / std::sqrt(static_cast<double>(o.state)), layer_random(seed, stream, 0));
  split(V.adjoint() * B.cast<Complex>(), p.find("B_re"), p.find("B_im"));
  split(draw_C(o, V, seed, stream, 1), p.find("C_re"), p.find("C_im"));
  draw_normal(p.find("D"), 1, layer_random(seed, stream, 3));
  draw_uniform(p.find("log_step"), std::log(o.s5.dt_min), std::log(o.s5.dt_max),
               layer_random(seed, stream, 4));
  if (o.bidirectional) {
    split(draw_C(o, V, seed, stream, 5), p.find("C_reverse_re"), p.find("C_reverse_im"));
  }
}

void map_s5(const MapRequest& request, std::span<Description<double>> out, MapTrace&) {
  const LayerOptions& o = request.options;
  const auto D = static_cast<size_t>(o.width), S = static_cast<size_t>(o.complex_states());
  for (size_t i = 0; i < out.size(); ++i) {
    const Views<float>& p = request.layers[i].tensors;
    Diagonal<double>& s = make_diagonal(out[i], o.width, o.complex_states(), o.bidirectional);
    const float *B_re = p["B_re"], *B_im = p["B_im"];
    for (size_t j = 0; j < S; ++j) {
      const S5State c = continuous(o, p, j);
      const Discretised d = discretise(c.Lambda, c.step, o.s5.discretisation);
      s.lambda_re[j] = d.lambda.real();
      s.lambda_im[j] = d.lambda.imag();
      const double re = d.scale.real(), im = d.scale.imag();
      for (size_t k = j * D; k < (j + 1) * D; ++k) {
        const auto b = static_cast<double>(B_re[k]), a = static_cast<double>(B_im[k]);
        s.W[k] = re * b - im * a;
        s.W[S * D + k] = re * a + im * b;
      }
    }
    read_out(p, 2, s);
  }
}

// W = scale·B gives dB = conj(scale)·dW and dscale = Σ conj(B)·dW; discretise_backward does the
// rest. Where Re Λ is clipped it has no gradient.
void map_s5_backward(const MapRequest& request, const MapTrace&,
                     std::span<const Description<double>> gradients,
                     std::span<const Views<double>> out) {
  const LayerOptions& o = request.options;
  const auto D = static_cast<size_t>(o.width), S = static_cast<size_t>(o.complex_states());
  for (size_t i = 0; i < out.size(); ++i) {
    const Views<float>& p = request.layers[i].tensors;
    const auto& g = std::get<Diagonal<double>>(gradients[i]);
    const Views<double>& dp = out[i];
    const float *B_re = p["B_re"], *B_im = p["B_im"];
    double *dB_re = dp["B_re"], *dB_im = dp["B_im"];
    for (size_t j = 0; j < S; ++j) {
      const S5State c = continuous(o, p, j);
      const Discretised d = discretise(c.Lambda, c.step, o.s5.discretisation);
      const double re = d.scale.real(), im = d.scale.imag();
      double scale_re = 0, scale_im = 0;
      for (size_t k = j * D; k < (j + 1) * D; ++k) {
        const double x = g.W[k], y = g.W[S * D + k];
        const auto b = static_cast<double>(B_re[k]), a = static_cast<double>(B_im[k]);
        dB_re[k] += re * x + im * y;
        dB_im[k] += re * y - im * x;
        scale_re += b * x + a * y;
        scale_im += b * y - a * x;
      }
      const DiscretisedGradient back =
          discretise_backward(c.Lambda, c.step, o.s5.discretisation,
                              {{g.lambda_re[j], g.lambda_im[j]}, {scale_re, scale_im}});
      const bool clipped = o.s5.clip && static_cast<double>(p["Lambda_re"][j]) > kLargestReal;
      if (!clipped) dp["Lambda_re"][j] += back.Lambda.real();
      dp["Lambda_im"][j] += back.Lambda.imag();
      dp["log_step"][j] += back.step * c.step;
    }
    read_out_backward(g, 2, dp);
  }
}

Recurrence recurrence_s5(const LayerOptions& o, const LayerValues& values, bool) {
  return mapped_diagonal(map_s5, o, values);
}

// A state stands for itself and its conjugate.
LayerStates states_s5(const LayerOptions& o) {
  return {.count = o.complex_states(), .scale = std::numbers::sqrt2};
}

}  // namespace rotrnn
