#include "rotrnn/layers/s4.h"

#include <fmt/format.h>

#include <cmath>
#include <stdexcept>

#include "rotrnn/layers/convolution.h"
#include "rotrnn/layers/discretise.h"
#include "rotrnn/layers/draw.h"
#include "rotrnn/layers/fused_map.h"
#include "rotrnn/layers/hippo.h"
#include "rotrnn/layers/real_fft.h"
#include "rotrnn/layers/registry.h"

namespace rotrnn {
namespace {

using torch::Tensor;

constexpr double kClip = 2;  // of Im B

}  // namespace

S4Impl::S4Impl(const S4Options& options, uint64_t seed, uint64_t stream)
    : S4Impl(options, seed, stream, /*clip=*/true) {}

S4Impl::S4Impl(const S4Options& options, uint64_t seed, uint64_t stream, bool clip)
    : options_(options) {
  check(options_);
  const int64_t width = options_.width, n = options_.states(), H = options_.tied ? 1 : width;
  auto random = [&](uint64_t parameter) {
    return Random(seed, RandomSite::initialise, {stream, parameter});
  };
  auto add = [&](const char* name, const Tensor& values) {
    return register_parameter(name, values.to(torch::kFloat32).contiguous());
  };
  const HippoNormal h = hippo_normal(options_.state);
  const Tensor b_im = clip ? torch::imag(h.B).clamp(-kClip, kClip) : torch::imag(h.B);
  A_log_re = add("A_log_re", torch::full({H, n}, std::log(0.5)));
  A_im = add("A_im", torch::imag(h.lambda).expand({H, n}));
  P_re = add("P_re", torch::real(h.P).expand({H, n}));
  P_im = add("P_im", torch::imag(h.P).expand({H, n}));
  B_re = add("B_re", torch::real(h.B).expand({H, n}));
  B_im = add("B_im", b_im.expand({H, n}));
  const double deviation = std::sqrt(0.5);
  C_re = add("C_re", draw_normal({width, n}, deviation, random(0)));
  C_im = add("C_im", draw_normal({width, n}, deviation, random(1)));
  D = add("D", draw_normal({width}, 1, random(2)));
  log_step = add("log_step", draw_uniform({width}, std::log(options_.dt_min),
                                          std::log(options_.dt_max), random(3)));
  if (options_.bidirectional) {
    C_reverse_re = add("C_reverse_re", draw_normal({width, n}, deviation, random(4)));
    C_reverse_im = add("C_reverse_im", draw_normal({width, n}, deviation, random(5)));
  }
  length_ = register_buffer("length", torch::zeros({}, torch::kInt64));
  if (options_.max_length > 0) grow(options_.max_length);
}

Dplr S4Impl::system() const {
  return {join(-torch::exp(A_log_re.to(torch::kFloat64)), A_im), join(P_re, P_im),
          torch::exp(log_step.to(torch::kFloat64)).unsqueeze(1)};
}

Tensor S4Impl::input() const {
  return join(B_re, B_im);
}

Tensor S4Impl::output() const {
  return join(C_re, C_im);
}

Tensor S4Impl::output_reverse() const {
  return options_.bidirectional ? join(C_reverse_re, C_reverse_im) : Tensor();
}

void S4Impl::grow(int64_t longest) const {
  int64_t L = length();
  if (L >= longest) return;
  const torch::NoGradGuard no_grad;
  const Dplr s = system();
  std::vector<Tensor> rows{output()};
  if (options_.bidirectional) rows.push_back(output_reverse());
  Tensor C = torch::stack(rows);
  if (L == 0) {
    C = C - times_power(s, C, longest);
    L = longest;
  }
  for (; L < longest; L *= 2) C = C + times_power(s, C, L);
  C_re.copy_(torch::real(C[0]));
  C_im.copy_(torch::imag(C[0]));
  if (options_.bidirectional) {
    C_reverse_re.copy_(torch::real(C[1]));
    C_reverse_im.copy_(torch::imag(C[1]));
  }
  length_.fill_(L);
}

S4Impl::Kernels S4Impl::kernels_of(const std::vector<Tensor>& more, bool fast) const {
  const int64_t L = length();
  if (L == 0) throw std::invalid_argument("S4: no length yet; call grow() first");
  const Dplr s = system();
  DplrPorts ports{{input()}, {output()}, {{0, 0}}};
  if (options_.bidirectional) {
    ports.outputs.push_back(output_reverse());
    ports.pairs.emplace_back(0, 1);
  }
  for (const Tensor& B_bar : more) {
    ports.pairs.emplace_back(static_cast<int64_t>(ports.inputs.size()), 0);
    ports.inputs.push_back(continuous_input(s, B_bar));
  }
  const std::vector<Tensor> spectrum = dplr_spectrum(s, ports, L, fast).unbind();
  Kernels out;
  out.K = inverse_real_fft(spectrum[0], L);
  if (options_.bidirectional) out.K_reverse = inverse_real_fft(spectrum[1], L);
  // K_0 is the mean over all frequencies, of which one of each conjugate pair is here.
  Tensor weight = torch::full({L / 2 + 1}, 2. / static_cast<double>(L), s.step.options());
  weight[0] = 1. / static_cast<double>(L);
  if (L % 2 == 0) weight[L / 2] = 1. / static_cast<double>(L);
  for (size_t i = 0; i < more.size(); ++i) {
    const size_t place = ports.pairs.size() - more.size() + i;
    out.first.push_back((torch::real(spectrum[place]) * weight).sum(-1));
  }
  return out;
}

std::pair<Tensor, Tensor> S4Impl::kernels(bool fast) const {
  const Kernels k = kernels_of({}, fast);
  return {k.K, k.K_reverse};
}

std::pair<Tensor, Tensor> S4Impl::plain_outputs() const {
  if (length() == 0) return {output(), output_reverse()};
  const Dplr s = system();
  return {plain_output(s, output(), length()),
          options_.bidirectional ? plain_output(s, output_reverse(), length()) : Tensor()};
}

void S4Impl::check_call(const Packed& u, const States& initial) const {
  if (initial.forward.defined() || initial.reverse.defined()) {
    throw std::invalid_argument(
        "initial state: this layer is run as a convolution, which begins with none; run it step by "
        "step instead, with steps()");
  }
  if (u.values.dim() != 2 || u.values.size(1) != options_.width) {
    throw std::invalid_argument(fmt::format("layer input: expected [tokens, {}], got [{}]",
                                            options_.width, fmt::join(u.values.sizes(), ", ")));
  }
}

FusedChannels S4Impl::fused_channels(const Layout& layout, double* seconds) const {
  grow(layout.longest());
  const std::vector<Tensor> t = fused_map(
      parameters(),
      [this] {
        const auto [K, K_reverse] = kernels(/*fast=*/true);
        std::vector<Tensor> both{K.t()};
        if (K_reverse.defined()) both.push_back(K_reverse.t());
        return both;
      },
      seconds);
  FusedChannels out = fused_convolution(t[0], t.size() > 1 ? t[1] : Tensor(), {});
  out.D = D;
  return out;
}

SystemOutput S4Impl::forward(const Packed& u, const States& initial, bool fast) const {
  check_call(u, initial);
  grow(u.layout->longest());
  const auto [K, K_reverse] = kernels(fast);
  const auto type = u.values.scalar_type();
  SystemOutput out;
  out.y = convolve(u, K.to(type), K_reverse.defined() ? K_reverse.to(type) : Tensor(), fast) +
          D.to(type) * u.values;
  return out;
}

S4Steps S4Impl::steps() const {
  if (options_.bidirectional) {
    throw std::invalid_argument(
        "step: a bidirectional layer needs the whole sequence; make it with bidirectional = false");
  }
  const Dplr s = system();
  return {discretise(s), discrete_input(s, input()), plain_outputs().first, D.to(torch::kFloat64)};
}

ChannelRecurrence S4Impl::recurrence() const {
  const Dplr s = system();
  const DplrStep step = discretise(s);
  const auto [C, C_reverse] = plain_outputs();
  ChannelRecurrence r;
  r.lambda = step.lambda;
  r.p = -step.F;
  r.q = 2 * step.G;
  r.b = discrete_input(s, input());
  r.c = 2 * C;
  if (C_reverse.defined()) r.c_reverse = 2 * C_reverse;
  r.D = D.to(torch::kFloat64);
  return r;
}

StepOutput S4Impl::step(const S4Steps& s, const Tensor& z, const Tensor& u) {
  const int64_t width = s.C.size(0), n = s.C.size(1);
  if (u.dim() != 2 || u.size(1) != width) {
    throw std::invalid_argument(fmt::format("layer input: expected [sequences, {}], got [{}]",
                                            width, fmt::join(u.sizes(), ", ")));
  }
  if (z.defined() && (z.dim() != 2 || z.size(0) != u.size(0) || z.size(1) != 2 * width * n)) {
    throw std::invalid_argument(
        fmt::format("state: expected [{}, {}] (sequences, real and imaginary parts of all "
                    "channels), got [{}]",
                    u.size(0), 2 * width * n, fmt::join(z.sizes(), ", ")));
  }
  const auto real = u.scalar_type(), type = c10::toComplexType(real);
  auto sum = [](const Tensor& t) { return 2 * torch::real(t).sum(-1, /*keepdim=*/true); };
  Tensor x = s.B_bar.to(type) * u.unsqueeze(2);
  if (z.defined()) {
    const Tensor planes = z.view({z.size(0), 2, width, n});
    const Tensor before = torch::complex(planes.select(1, 0), planes.select(1, 1));
    x = x + s.step.lambda.to(type) * before - s.step.F.to(type) * sum(s.step.G.to(type) * before);
  }
  StepOutput out;
  out.y = sum(s.C.to(type) * x).squeeze(-1) + s.D.to(real) * u;
  out.z = torch::stack({torch::real(x), torch::imag(x)}, 1).flatten(1);
  return out;
}

ParameterGroup S4Impl::group(const std::string& parameter) const {
  if (parameter == "log_step") {
    return options_.dt_global ? ParameterGroup::decay : ParameterGroup::recurrent;
  }
  const bool recurrent =
      parameter.starts_with("A_") || parameter.starts_with("P_") || parameter.starts_with("B_");
  return recurrent ? ParameterGroup::recurrent : ParameterGroup::decay;
}

void S4Impl::pretty_print(std::ostream& stream) const {
  stream << fmt::format("rotrnn::S4(width={}, state={}, length={}, bidirectional={})",
                        options_.width, options_.state, length(), options_.bidirectional);
}

std::shared_ptr<Layer> make_s4(const LayerOptions& options, uint64_t seed, uint64_t stream) {
  return std::make_shared<S4Impl>(options.s4_options(), seed, stream);
}

}  // namespace rotrnn
