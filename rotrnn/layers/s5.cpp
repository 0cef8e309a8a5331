#include "rotrnn/layers/s5.h"

#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "rotrnn/layers/discretise.h"
#include "rotrnn/layers/draw.h"
#include "rotrnn/layers/hippo.h"
#include "rotrnn/layers/registry.h"

namespace rotrnn {

using torch::Tensor;

S5Impl::S5Impl(const S5Options& options, uint64_t seed, uint64_t stream) : options_(options) {
  check(options_);
  const int64_t width = options_.width, P = options_.state, J = options_.blocks;
  auto random = [&](uint64_t parameter) {
    return Random(seed, RandomSite::initialise, {stream, parameter});
  };
  auto add = [&](const char* name, const Tensor& values) {
    return register_parameter(name, values.to(torch::kFloat32));
  };
  auto add_complex = [&](Tensor& re, Tensor& im, const std::string& name, const Tensor& values) {
    re = add((name + "_re").c_str(), torch::real(values).contiguous());
    im = add((name + "_im").c_str(), torch::imag(values).contiguous());
  };

  const HippoNormal hippo = hippo_normal(P / J);
  const Tensor V = torch::block_diag(std::vector<Tensor>(J, hippo.V));  // [P, P/2]
  add_complex(Lambda_re, Lambda_im, "Lambda", hippo.lambda.repeat({J}));

  const auto rows = static_cast<double>(P), columns = static_cast<double>(width);
  const Tensor B = draw_truncated_normal({P, width}, 1 / std::sqrt(rows), random(0));
  add_complex(B_re, B_im, "B", torch::matmul(torch::conj(V).t(), B.to(torch::kComplexDouble)));

  auto draw_C = [&](uint64_t first) {
    if (options_.c_init == S5CInit::complex_normal) {
      const double deviation = std::sqrt(0.5);
      return torch::complex(draw_normal({width, P / 2}, deviation, random(first)),
                            draw_normal({width, P / 2}, deviation, random(first + 1)));
    }
    const double deviation =
        1 / std::sqrt(options_.c_init == S5CInit::lecun_normal ? rows * columns : rows);
    return torch::matmul(
        torch::complex(draw_truncated_normal({width, P}, deviation, random(first)),
                       draw_truncated_normal({width, P}, deviation, random(first + 1))),
        V);
  };
  add_complex(C_re, C_im, "C", draw_C(1));
  D = add("D", draw_normal({width}, 1, random(3)));
  log_step = add("log_step", draw_uniform({P / 2}, std::log(options_.dt_min),
                                          std::log(options_.dt_max), random(4)));
  if (options_.bidirectional) add_complex(C_reverse_re, C_reverse_im, "C_reverse", draw_C(5));
}

System S5Impl::system() const {
  Tensor decay = Lambda_re.to(torch::kFloat64);
  if (options_.clip) decay = torch::clamp_max(decay, -1e-4);
  const Tensor step = options_.step_rescale * torch::exp(log_step.to(torch::kFloat64));
  const auto [lambda, scale] = discretise(join(decay, Lambda_im), step, options_.discretisation);
  const Tensor input = scale.unsqueeze(1) * join(B_re, B_im);
  auto read_out = [](const Tensor& re, const Tensor& im) {
    return 2 * torch::cat({re, -im}, 1).to(torch::kFloat64);  // 2·Re(C x)
  };
  System s;
  s.lambda_re = torch::real(lambda);
  s.lambda_im = torch::imag(lambda);
  s.W = torch::cat({torch::real(input), torch::imag(input)});
  s.V = read_out(C_re, C_im);
  if (options_.bidirectional) s.V_reverse = read_out(C_reverse_re, C_reverse_im);
  s.D = D.to(torch::kFloat64);
  return s;
}

ParameterGroup S5Impl::group(const std::string& parameter) const {
  const S5Groups g = options_.groups;
  if (parameter.starts_with("Lambda")) return ParameterGroup::recurrent;
  if (parameter == "log_step") {
    return options_.dt_global ? ParameterGroup::decay : ParameterGroup::recurrent;
  }
  if (parameter.starts_with("B_")) {
    return g == S5Groups::b_and_c_decay        ? ParameterGroup::recurrent_decay
           : g == S5Groups::b_fast_and_c_decay ? ParameterGroup::decay
                                               : ParameterGroup::recurrent;
  }
  return g == S5Groups::no_bc_decay ? ParameterGroup::recurrent : ParameterGroup::decay;
}

Tensor S5Impl::state_norms(const Tensor& z) const {
  return std::numbers::sqrt2 * Layer::state_norms(z);
}

void S5Impl::pretty_print(std::ostream& stream) const {
  stream << fmt::format("rotrnn::S5(width={}, state={}, blocks={}, bidirectional={})",
                        options_.width, options_.state, options_.blocks, options_.bidirectional);
}

std::shared_ptr<Layer> make_s5(const LayerOptions& options, uint64_t seed, uint64_t stream) {
  return std::make_shared<S5Impl>(options.s5_options(), seed, stream);
}

}  // namespace rotrnn
