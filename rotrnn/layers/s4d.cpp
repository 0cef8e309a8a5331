#include "rotrnn/layers/s4d.h"

#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "rotrnn/layers/channel_fused.h"
#include "rotrnn/layers/discretise.h"
#include "rotrnn/layers/draw.h"
#include "rotrnn/layers/fused_map.h"
#include "rotrnn/layers/hippo.h"
#include "rotrnn/layers/registry.h"

namespace rotrnn {
namespace {

using torch::Tensor;

// Im Λ and B of one channel at the start; Re Λ is -½ throughout.
struct Start {
  Tensor frequency;  // [N/2]
  Tensor B;          // [N/2], complex
};

Start start_of(S4DInit init, int64_t N) {
  const Tensor n = torch::arange(N / 2, torch::kFloat64);
  const auto size = static_cast<double>(N);
  const Tensor ones = torch::ones({N / 2}, torch::kComplexDouble);
  switch (init) {
    case S4DInit::lin:
      return {std::numbers::pi * n, ones};
    case S4DInit::inv:
      return {size / std::numbers::pi * (size / (2 * n + 1) - 1), ones};
    default: {
      const HippoNormal h = hippo_normal(N);
      return {torch::imag(h.lambda),
              torch::complex(torch::real(h.B), torch::imag(h.B).clamp(-2, 2))};
    }
  }
}

}  // namespace

S4DImpl::S4DImpl(const S4DOptions& options, uint64_t seed, uint64_t stream) : options_(options) {
  check(options_);
  const int64_t width = options_.width, N = options_.states(), H = options_.tied ? 1 : width;
  auto random = [&](uint64_t parameter) {
    return Random(seed, RandomSite::initialise, {stream, parameter});
  };
  auto add = [&](const char* name, const Tensor& values) {
    return register_parameter(name, values.to(torch::kFloat32).contiguous());
  };
  const Start start = start_of(options_.init, options_.state);
  A_log_re = add("A_log_re", torch::full({H, N}, std::log(0.5)));
  A_im = add("A_im", start.frequency.expand({H, N}));
  const Tensor b_re = torch::real(start.B).expand({H, N}),
               b_im = torch::imag(start.B).expand({H, N});
  if (options_.train_b) {
    B_re = add("B_re", b_re);
    B_im = add("B_im", b_im);
  } else {
    B_re = register_buffer("B_re", b_re.to(torch::kFloat32).contiguous());
    B_im = register_buffer("B_im", b_im.to(torch::kFloat32).contiguous());
  }
  const double deviation = std::sqrt(0.5);
  C_re = add("C_re", draw_normal({width, N}, deviation, random(0)));
  C_im = add("C_im", draw_normal({width, N}, deviation, random(1)));
  D = add("D", draw_normal({width}, 1, random(2)));
  log_step = add("log_step", draw_uniform({width}, std::log(options_.dt_min),
                                          std::log(options_.dt_max), random(3)));
  if (options_.bidirectional) {
    C_reverse_re = add("C_reverse_re", draw_normal({width, N}, deviation, random(4)));
    C_reverse_im = add("C_reverse_im", draw_normal({width, N}, deviation, random(5)));
  }
}

ChannelSystem S4DImpl::channels() const {
  const Tensor Lambda = join(-torch::exp(A_log_re.to(torch::kFloat64)), A_im);
  const Tensor step = options_.step_rescale * torch::exp(log_step.to(torch::kFloat64)).unsqueeze(1);
  const auto [lambda, scale] = discretise(Lambda, step, options_.discretisation);
  const Tensor input = 2 * scale * join(B_re, B_im);
  const Tensor c = join(C_re, C_im) * input;
  ChannelSystem s;
  s.lambda_re = torch::real(lambda);
  s.lambda_im = torch::imag(lambda);
  s.c_re = torch::real(c);
  s.c_im = torch::imag(c);
  if (options_.bidirectional) {
    const Tensor reverse = join(C_reverse_re, C_reverse_im) * input;
    s.c_reverse_re = torch::real(reverse);
    s.c_reverse_im = torch::imag(reverse);
  }
  s.D = D.to(torch::kFloat64);
  return s;
}

ChannelRecurrence S4DImpl::recurrence() const {
  const ChannelSystem s = channels();
  ChannelRecurrence r;
  r.lambda = torch::complex(s.lambda_re, s.lambda_im);
  r.c = torch::complex(s.c_re, s.c_im);
  if (s.bidirectional()) r.c_reverse = torch::complex(s.c_reverse_re, s.c_reverse_im);
  r.D = s.D;
  return r;
}

std::pair<Tensor, Tensor> S4DImpl::kernels(int64_t length) const {
  const ChannelSystem s = channels();
  auto kernel = [&](const Tensor& re, const Tensor& im) {
    return channel_kernel(s.lambda_re, s.lambda_im, re, im, length);
  };
  return {kernel(s.c_re, s.c_im),
          s.bidirectional() ? kernel(s.c_reverse_re, s.c_reverse_im) : Tensor()};
}

SystemOutput S4DImpl::forward(const Packed& u, const States& initial, bool fast) const {
  const bool kernel = fast && !initial.reverse.defined() && u.values.device().is_cpu() &&
                      u.values.scalar_type() == torch::kFloat32;
  return kernel ? run_channels_fused(channels(), u, initial) : run_channels(channels(), u, initial);
}

FusedChannels S4DImpl::fused_channels(const Layout& layout, double* seconds) const {
  const std::vector<Tensor> t = fused_map(
      parameters(),
      [this] {
        const ChannelSystem s = channels();
        std::vector<Tensor> planes{s.lambda_re.t(), s.lambda_im.t(), s.c_re.t(), s.c_im.t()};
        if (s.bidirectional())
          planes.insert(planes.end(), {s.c_reverse_re.t(), s.c_reverse_im.t()});
        return planes;
      },
      seconds);
  ChannelPlanes planes{t[0], t[1], t[2], t[3], {}, {}};
  if (options_.bidirectional) {
    planes.c_reverse_re = t[4];
    planes.c_reverse_im = t[5];
  }
  FusedChannels out = fused_recurrence(planes, layout);
  out.D = D;
  return out;
}

ParameterGroup S4DImpl::group(const std::string& parameter) const {
  if (parameter == "log_step") {
    return options_.dt_global ? ParameterGroup::decay : ParameterGroup::recurrent;
  }
  const bool recurrent = parameter.starts_with("A_") || parameter.starts_with("B_");
  return recurrent ? ParameterGroup::recurrent : ParameterGroup::decay;
}

void S4DImpl::pretty_print(std::ostream& stream) const {
  stream << fmt::format("rotrnn::S4D(width={}, state={}, bidirectional={})", options_.width,
                        options_.state, options_.bidirectional);
}

std::shared_ptr<Layer> make_s4d(const LayerOptions& options, uint64_t seed, uint64_t stream) {
  return std::make_shared<S4DImpl>(options.s4d_options(), seed, stream);
}

}  // namespace rotrnn
