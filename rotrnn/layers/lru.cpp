#include "rotrnn/layers/lru.h"

#include <fmt/format.h>

#include <cmath>
#include <stdexcept>

#include "rotrnn/layers/draw.h"
#include "rotrnn/layers/registry.h"

namespace rotrnn {

using torch::Tensor;

LruImpl::LruImpl(const LruOptions& options, uint64_t seed, uint64_t stream) : options_(options) {
  check(options_);
  const int64_t width = options_.width, S = options_.states();
  auto random = [&](uint64_t parameter) {
    return Random(seed, RandomSite::initialise, {stream, parameter});
  };
  auto add = [&](const char* name, const Tensor& values) {
    return register_parameter(name, values.to(torch::kFloat32));
  };

  const double low = options_.r_min * options_.r_min, high = options_.r_max * options_.r_max;
  const Tensor nu = -0.5 * torch::log(draw_uniform({S}, low, high, random(0)));
  nu_log = add("nu_log", torch::log(nu));
  theta_log = add("theta_log", torch::log(draw_uniform({S}, 0, options_.max_phase, random(1))));
  if (options_.gamma == LruGamma::learned) {
    gamma_log = add("gamma_log", 0.5 * torch::log(-torch::expm1(-2 * nu)));
  }
  const double b = std::sqrt(0.5 / static_cast<double>(width));
  const double c = std::sqrt(1 / static_cast<double>(S));
  B_re = add("B_re", draw_normal({S, width}, b, random(2)));
  B_im = add("B_im", draw_normal({S, width}, b, random(3)));
  C_re = add("C_re", draw_normal({width, S}, c, random(4)));
  C_im = add("C_im", draw_normal({width, S}, c, random(5)));
  D = add("D", draw_normal({width}, 1, random(6)));
  if (options_.bidirectional) {
    C_reverse_re = add("C_reverse_re", draw_normal({width, S}, c, random(7)));
    C_reverse_im = add("C_reverse_im", draw_normal({width, S}, c, random(8)));
  }
}

System LruImpl::system() const {
  const Tensor nu = torch::exp(nu_log.to(torch::kFloat64));
  const Tensor radius = torch::exp(-nu), angle = torch::exp(theta_log.to(torch::kFloat64));
  // 1 - |λ|² by expm1: the difference would lose its digits when |λ| is near 1.
  const Tensor scale = options_.gamma == LruGamma::learned
                           ? torch::exp(gamma_log.to(torch::kFloat64))
                           : torch::sqrt(-torch::expm1(-2 * nu));
  auto read_out = [](const Tensor& re, const Tensor& im) {
    return torch::cat({re, -im}, 1).to(torch::kFloat64);  // Re(C x)
  };
  System s;
  s.lambda_re = radius * torch::cos(angle);
  s.lambda_im = radius * torch::sin(angle);
  s.W = scale.repeat({2}).unsqueeze(1) * torch::cat({B_re, B_im}).to(torch::kFloat64);
  s.V = read_out(C_re, C_im);
  if (options_.bidirectional) s.V_reverse = read_out(C_reverse_re, C_reverse_im);
  s.D = D.to(torch::kFloat64);
  return s;
}

ParameterGroup LruImpl::group(const std::string& parameter) const {
  for (const char* name : {"nu_log", "theta_log", "gamma_log", "B_re", "B_im"}) {
    if (parameter == name) return ParameterGroup::recurrent;
  }
  return ParameterGroup::decay;
}

void LruImpl::load(const LruParameters& p) {
  const std::pair<Tensor*, const Tensor*> pairs[] = {{&nu_log, &p.nu_log},
                                                     {&theta_log, &p.theta_log},
                                                     {&gamma_log, &p.gamma_log},
                                                     {&B_re, &p.B_re},
                                                     {&B_im, &p.B_im},
                                                     {&C_re, &p.C_re},
                                                     {&C_im, &p.C_im},
                                                     {&C_reverse_re, &p.C_reverse_re},
                                                     {&C_reverse_im, &p.C_reverse_im},
                                                     {&D, &p.D}};
  auto shape = [](const Tensor& t) {
    return t.defined() ? fmt::format("[{}]", fmt::join(t.sizes(), ", ")) : std::string("none");
  };
  for (const auto& [own, given] : pairs) {
    if (shape(*own) != shape(*given)) {
      throw std::invalid_argument(
          fmt::format("LRU: load: a parameter is {} where this layer has {}; make the layer with "
                      "the same width, state = 2S and direction, and gamma = \"learned\"",
                      shape(*given), shape(*own)));
    }
  }
  const torch::NoGradGuard no_grad;
  for (const auto& [own, given] : pairs) {
    if (own->defined()) own->copy_(*given);
  }
}

void LruImpl::pretty_print(std::ostream& stream) const {
  stream << fmt::format("rotrnn::Lru(width={}, state={}, bidirectional={})", options_.width,
                        options_.state, options_.bidirectional);
}

std::shared_ptr<Layer> make_lru(const LayerOptions& options, uint64_t seed, uint64_t stream) {
  return std::make_shared<LruImpl>(options.lru_options(), seed, stream);
}

}  // namespace rotrnn
