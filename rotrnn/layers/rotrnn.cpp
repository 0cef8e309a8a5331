#include "rotrnn/layers/rotrnn.h"

#include <fmt/format.h>

#include <cmath>
#include <numbers>
#include <stdexcept>

#include "rotrnn/layers/draw.h"
#include "rotrnn/layers/registry.h"
#include "rotrnn/layers/rotrnn_fused.h"

namespace rotrnn {
namespace {

using torch::Tensor;

Tensor as_double(const Tensor& t) {
  return t.to(torch::kFloat64);
}

// Appends a zero along `dim` when its size is odd, so that coordinates come in pairs.
Tensor even(const Tensor& t, int64_t dim) {
  if (t.size(dim) % 2 == 0) return t;
  return torch::cat({t, torch::zeros_like(t.narrow(dim, 0, 1))}, dim);
}

// [H, dh, ...] to the planes [2S, ...]: coordinates 0, 2, … of every head, then 1, 3, ….
Tensor rows_to_planes(const Tensor& t) {
  const Tensor pairs = even(t, 1).unflatten(1, {-1, 2});  // [H, ⌈dh/2⌉, 2, ...]
  return torch::cat({pairs.select(2, 0).flatten(0, 1), pairs.select(2, 1).flatten(0, 1)});
}

Tensor normal(torch::IntArrayRef shape, double deviation, Random random) {
  return draw_normal(shape, deviation, random).to(torch::kFloat32);
}

}  // namespace

RotRNNImpl::RotRNNImpl(const RotRNNOptions& options, uint64_t seed, uint64_t stream)
    : options_(options) {
  check(options_);
  options_.init = options_.init.resolved();
  const InitOptions& init = options_.init;
  const int64_t width = options_.width, N = options_.state, H = options_.heads;
  const int64_t dh = options_.head_size();
  auto random = [&](uint64_t parameter) {
    return Random(seed, RandomSite::initialise, {stream, parameter});
  };

  const Tensor angle = draw({H, dh / 2}, random(0), [&](Random& r) {
                         return init.theta_max * (1 - r.uniform());
                       }).to(torch::kFloat32);
  theta = theta_is_log() ? register_parameter("theta_log", angle.log())
                         : register_parameter("theta", angle);

  const double low = init.gamma_min, high = init.gamma_max;
  gamma_log = register_parameter(
      "gamma_log", draw({H}, random(1), [&](Random& r) {
                     const double u = 1 - r.uniform();
                     if (init.gamma_init == GammaInit::ring) {
                       return std::log(-0.5 * std::log(u * (high * high - low * low) + low * low));
                     }
                     return std::lerp(std::log(-std::log(high)), std::log(-std::log(low)), u);
                   }).to(torch::kFloat32));

  const bool by_fan_in = init.bc_init == MatrixInit::paper;
  const double both = 1 / std::sqrt(static_cast<double>(width + N));
  const double b = by_fan_in ? 1 / std::sqrt(static_cast<double>(width)) : both;
  const double c = by_fan_in ? 1 / std::sqrt(static_cast<double>(N)) : both;
  const double m =
      init.m_init == MatrixInit::paper ? 1 : 1 / std::sqrt(static_cast<double>(N + dh));
  M = options_.learn_rotation ? register_parameter("M", normal({H, dh, dh}, m, random(2)))
                              : register_buffer("M", torch::zeros({H, dh, dh}));  // P = I
  B = register_parameter("B", normal({H, dh, width}, b, random(3)));
  C = register_parameter("C", normal({width, N}, c, random(4)));
  D = register_parameter("D", normal({width}, 1, random(5)));
  if (options_.bidirectional) {
    C_reverse = register_parameter("C_reverse", normal({width, N}, c, random(6)));
  }
}

bool RotRNNImpl::theta_is_log() const {
  return options_.init.theta_form == ThetaForm::log;
}

Tensor RotRNNImpl::gamma() const {
  return torch::exp(-torch::exp(as_double(gamma_log)));
}

Tensor RotRNNImpl::angles() const {
  return theta_is_log() ? torch::exp(as_double(theta)) : as_double(theta);
}

Tensor RotRNNImpl::rotation() const {
  const Tensor m = as_double(M);
  return torch::matrix_exp(m - m.transpose(1, 2));
}

// In double throughout: a float32 matrix exponential loses orthogonality, and 1 - γ² loses its
// digits when γ is near 1.
System RotRNNImpl::system() const {
  const int64_t H = options_.heads, dh = options_.head_size(), width = options_.width;
  const Tensor gamma_ = gamma(), P = rotation(), B_ = as_double(B);
  const Tensor one_minus_gamma2 = -torch::expm1(-2 * torch::exp(as_double(gamma_log)));
  const Tensor B_norm2 = B_.square().sum({1, 2});

  Tensor input_scale = torch::ones_like(gamma_), radius = gamma_;
  if (options_.normalisation == Normalisation::xi) {
    input_scale = torch::sqrt(options_.c * one_minus_gamma2 / B_norm2);
  } else if (options_.normalisation == Normalisation::alpha) {
    input_scale = torch::rsqrt(options_.c * gamma_.square() + B_norm2);
    radius = input_scale * gamma_;
  }

  // With z = Pᵀx, P leaves the recurrence: z_t = γΘ z_{t-1} + (ξ PᵀB) u_t and y_t = (C P) z_t.
  const Tensor PtB = torch::matmul(P.transpose(1, 2), input_scale.view({H, 1, 1}) * B_);
  auto read_out = [&](const Tensor& C_) {
    const Tensor CP = torch::matmul(as_double(C_).view({width, H, dh}).transpose(0, 1), P);
    return rows_to_planes(CP.transpose(1, 2)).t();
  };

  // An odd dh leaves one coordinate that does not rotate: θ = 0 and an empty imaginary plane.
  Tensor angle = angles();
  if (dh % 2 == 1) angle = torch::cat({angle, torch::zeros({H, 1}, angle.options())}, 1);

  System s;
  const Tensor per_pair = radius.unsqueeze(1);
  s.lambda_re = (per_pair * torch::cos(angle)).flatten();
  s.lambda_im = (per_pair * torch::sin(angle)).flatten();
  s.W = rows_to_planes(PtB);
  s.V = read_out(C);
  if (options_.bidirectional) s.V_reverse = read_out(C_reverse);
  s.D = as_double(D);
  if (options_.stationary_start) {
    // The first input enters scaled by 1/√(1-γ²): z_0 = ((1-γ²)^{-½} - 1)·λ⁻¹·W u_1.
    const Tensor scale = ((torch::rsqrt(one_minus_gamma2) - 1) / gamma_).unsqueeze(1);
    s.start_re = (scale * torch::cos(angle)).flatten();
    s.start_im = (-scale * torch::sin(angle)).flatten();
  }
  return s;
}

std::vector<System> RotRNNImpl::fused_systems(const std::vector<const DiagonalLayer*>& layers,
                                              int threads, double* seconds) const {
  std::vector<const RotRNNImpl*> own;
  for (const Layer* layer : layers) own.push_back(dynamic_cast<const RotRNNImpl*>(layer));
  return rotrnn::fused_systems(own, threads, seconds);
}

ParameterGroup RotRNNImpl::group(const std::string& parameter) const {
  for (const char* name : {"theta", "theta_log", "gamma_log", "B"}) {
    if (parameter == name) return ParameterGroup::recurrent;
  }
  return ParameterGroup::decay;
}

// ‖x‖ = ‖Pᵀx‖ = ‖z‖.
Tensor RotRNNImpl::state_norms(const Tensor& z) const {
  const Tensor planes = z.unflatten(-1, {2, options_.heads, -1});
  return planes.square().sum({-3, -1}).sqrt();
}

Tensor RotRNNImpl::hidden(const Tensor& z) const {
  const int64_t H = options_.heads, dh = options_.head_size();
  const int64_t states = z.size(-1) / 2;
  const Tensor re = z.narrow(-1, 0, states).unflatten(-1, {H, -1});
  const Tensor im = z.narrow(-1, states, states).unflatten(-1, {H, -1});
  const Tensor pairs = torch::stack({re, im}, -1).flatten(-2).narrow(-1, 0, dh);  // [.., H, dh]
  return torch::einsum("hij,...hj->...hi", {rotation().to(z.scalar_type()), pairs}).flatten(-2);
}

Tensor RotRNNImpl::folded(const Tensor& x) const {
  const Tensor heads = x.unflatten(-1, {options_.heads, -1});
  const Tensor z = torch::einsum("hij,...hi->...hj", {rotation().to(x.scalar_type()), heads});
  const Tensor pairs = even(z, -1 + z.dim()).unflatten(-1, {-1, 2});
  return torch::cat({pairs.select(-1, 0).flatten(-2), pairs.select(-1, 1).flatten(-2)}, -1);
}

RotRNNOutput RotRNNImpl::forward(const Packed& u, const States& initial, bool want_hidden) {
  SystemOutput run = run_system(system(), u, initial);
  RotRNNOutput out{run.y, run.final, {}, {}};
  if (want_hidden) {
    out.hidden = hidden(run.z);
    out.head_norms = out.hidden.unflatten(-1, {options_.heads, -1}).norm(2, -1);
  }
  return out;
}

void RotRNNImpl::pretty_print(std::ostream& stream) const {
  stream << fmt::format("rotrnn::RotRNN(width={}, state={}, heads={}, bidirectional={})",
                        options_.width, options_.state, options_.heads, options_.bidirectional);
}

LruParameters to_lru(const RotRNNImpl& layer) {
  if (layer.options().stationary_start) {
    throw std::invalid_argument("to_lru: an LRU has no stationary start; train without it");
  }
  torch::NoGradGuard no_grad;
  const System s = layer.system();
  const int64_t S = s.states();
  const Tensor radius = torch::hypot(s.lambda_re, s.lambda_im);
  const Tensor log_radius = torch::log(radius);
  if (!(log_radius < 0).all().item<bool>()) {
    throw std::invalid_argument("to_lru: some |λ| is 1 or more, which an LRU cannot express");
  }
  const double turn = 2 * std::numbers::pi;
  const Tensor angle = torch::remainder(torch::atan2(s.lambda_im, s.lambda_re), turn);
  const Tensor one_minus = -torch::expm1(2 * log_radius);
  const Tensor scale = torch::rsqrt(one_minus).unsqueeze(1);

  LruParameters lru;
  lru.nu_log = torch::log(-log_radius);
  lru.theta_log = torch::log(torch::where(angle == 0, torch::full_like(angle, turn), angle));
  lru.gamma_log = 0.5 * torch::log(one_minus);
  lru.B_re = s.W.narrow(0, 0, S) * scale;
  lru.B_im = s.W.narrow(0, S, S) * scale;
  lru.C_re = s.V.narrow(1, 0, S).clone();
  lru.C_im = -s.V.narrow(1, S, S);
  if (s.bidirectional()) {
    lru.C_reverse_re = s.V_reverse.narrow(1, 0, S).clone();
    lru.C_reverse_im = -s.V_reverse.narrow(1, S, S);
  }
  lru.D = s.D.clone();
  return lru;
}

std::shared_ptr<Layer> make_rotrnn(const LayerOptions& options, uint64_t seed, uint64_t stream) {
  return std::make_shared<RotRNNImpl>(options.rotrnn_options(), seed, stream);
}

}  // namespace rotrnn
