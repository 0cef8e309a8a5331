#include "rotrnn/layers/channel.h"

#include <fmt/format.h>

#include <stdexcept>

#include "rotrnn/layers/scan.h"

namespace rotrnn {
namespace {

using torch::Tensor;

void check_rows(const ChannelSystem& s, const Tensor& u, const char* rows) {
  const int64_t D = s.lambda_re.size(0);
  if (u.dim() != 2 || u.size(1) != D) {
    throw std::invalid_argument(fmt::format("layer input: expected [{}, {}], got [{}]", rows, D,
                                            fmt::join(u.sizes(), ", ")));
  }
}

void check_states(const ChannelSystem& s, const Tensor& z, int64_t sequences) {
  if (!z.defined()) return;
  const int64_t size = 2 * s.lambda_re.numel();
  if (z.dim() != 2 || z.size(0) != sequences || z.size(1) != size) {
    throw std::invalid_argument(
        fmt::format("initial state: expected [{}, {}] (sequences, real and imaginary parts of all "
                    "channels), got [{}]",
                    sequences, size, fmt::join(z.sizes(), ", ")));
  }
}

// u [rows, D] as what enters the states [rows, 2·D·N].
Tensor drive(const Tensor& u, int64_t N) {
  const Tensor re = u.unsqueeze(2).expand({-1, -1, N}).flatten(1);
  return torch::cat({re, torch::zeros_like(re)}, 1);
}

// Σ_n Re(c_n x_n) of states [rows, 2·D·N].
Tensor read_out(const Tensor& z, const Tensor& c_re, const Tensor& c_im) {
  const auto type = z.scalar_type();
  const Tensor parts = z.view({z.size(0), 2, c_re.size(0), c_re.size(1)});
  return (parts.select(1, 0) * c_re.to(type) - parts.select(1, 1) * c_im.to(type)).sum(-1);
}

}  // namespace

void check_channels(const ChannelSystem& s, const Packed& u, const States& initial) {
  check_rows(s, u.values, "tokens");
  if (initial.reverse.defined() && !s.bidirectional()) {
    throw std::invalid_argument(
        "initial state: a reverse state was given to a layer that runs forward only");
  }
  check_states(s, initial.forward, u.layout->sequences());
  check_states(s, initial.reverse, u.layout->sequences());
}

SystemOutput run_channels(const ChannelSystem& s, const Packed& u, const States& initial) {
  check_channels(s, u, initial);
  const auto type = u.values.scalar_type();
  const Tensor re = s.lambda_re.to(type).flatten(), im = s.lambda_im.to(type).flatten();
  const Tensor v = drive(u.values, s.lambda_re.size(1));
  SystemOutput out;
  out.z = scan(v, re, im, initial.forward, u.layout, Direction::forward);
  out.final.forward = out.z.index_select(0, u.layout->last());
  out.y = read_out(out.z, s.c_re, s.c_im) + s.D.to(type) * u.values;
  if (!s.bidirectional()) return out;
  out.z_reverse = scan(v, re, im, initial.reverse, u.layout, Direction::reverse);
  out.final.reverse = out.z_reverse.index_select(0, u.layout->first());
  // The states of the next step; after the last one, those that were given.
  const Tensor after =
      initial.reverse.defined() ? initial.reverse : torch::zeros_like(out.final.reverse);
  const Tensor next = torch::cat({out.z_reverse.narrow(0, 1, v.size(0) - 1), after.narrow(0, 0, 1)})
                          .index_copy(0, u.layout->last(), after);
  out.y = out.y + read_out(next, s.c_reverse_re, s.c_reverse_im);
  return out;
}

Tensor channel_kernel(const Tensor& lambda_re, const Tensor& lambda_im, const Tensor& c_re,
                      const Tensor& c_im, int64_t length) {
  // By doubling: K of 2l steps from λ^0 … λ^{l-1}; logarithms would not do where λ = 0.
  const Tensor lambda = torch::complex(lambda_re, lambda_im);
  Tensor powers = torch::ones_like(lambda).unsqueeze(2), next = lambda.unsqueeze(2);
  while (powers.size(2) < length) {
    powers = torch::cat({powers, powers * next}, 2);
    next = next * next;
  }
  const Tensor c = torch::complex(c_re, c_im).unsqueeze(2);
  return torch::real((c * powers.narrow(2, 0, length)).sum(1));
}

StepOutput step(const ChannelSystem& s, const Tensor& z, const Tensor& u) {
  if (s.bidirectional()) {
    throw std::invalid_argument(
        "step: a bidirectional layer needs the whole sequence; make it with bidirectional = false");
  }
  check_rows(s, u, "sequences");
  check_states(s, z, u.size(0));
  const auto type = u.scalar_type();
  const Tensor re = s.lambda_re.to(type).flatten(), im = s.lambda_im.to(type).flatten();
  StepOutput out;
  out.z = drive(u, s.lambda_re.size(1));
  if (z.defined()) {
    const int64_t S = re.size(0);
    const Tensor a = z.narrow(1, 0, S), b = z.narrow(1, S, S);
    out.z = out.z + torch::cat({a * re - b * im, a * im + b * re}, 1);
  }
  out.y = read_out(out.z, s.c_re, s.c_im) + s.D.to(type) * u;
  return out;
}

}  // namespace rotrnn
