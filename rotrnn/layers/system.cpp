#include "rotrnn/layers/system.h"

#include <fmt/format.h>

#include <stdexcept>

#include "rotrnn/layers/scan.h"

namespace rotrnn {
namespace {

using torch::Tensor;

// Multiplies planes [.., 2S] by a complex vector given as two parts [S].
Tensor multiply_planes(const Tensor& planes, const Tensor& re, const Tensor& im) {
  const int64_t states = planes.size(-1) / 2;
  const Tensor a = planes.narrow(-1, 0, states), b = planes.narrow(-1, states, states);
  return torch::cat({a * re - b * im, a * im + b * re}, -1);
}

void check_states(const Tensor& given, const System& system, int64_t sequences) {
  if (!given.defined()) return;
  if (given.dim() != 2 || given.size(0) != sequences || given.size(1) != 2 * system.states()) {
    throw std::invalid_argument(fmt::format(
        "initial state: expected [{}, {}] (sequences, real and imaginary planes), got [{}]",
        sequences, 2 * system.states(), fmt::join(given.sizes(), ", ")));
  }
}

void check_input(const Tensor& u, const System& system, const char* rows) {
  if (u.dim() != 2 || u.size(1) != system.width()) {
    throw std::invalid_argument(fmt::format("layer input: expected [{}, {}], got [{}]", rows,
                                            system.width(), fmt::join(u.sizes(), ", ")));
  }
}

}  // namespace

SystemOutput run_system(const System& system, const Packed& u, const States& initial) {
  check_input(u.values, system, "tokens");
  if (initial.reverse.defined() && !system.bidirectional()) {
    throw std::invalid_argument(
        "initial state: a reverse state was given to a layer that runs "
        "forward only");
  }
  check_states(initial.forward, system, u.layout->sequences());
  check_states(initial.reverse, system, u.layout->sequences());

  // Rounded once, here, as the fused kernels get it: both paths compute the same function.
  const auto type = u.values.scalar_type();
  const Tensor lambda_re = system.lambda_re.to(type), lambda_im = system.lambda_im.to(type);
  Tensor v = torch::matmul(u.values, system.W.to(type).t());
  if (system.b.defined()) v = v + system.b.to(type);

  auto start = [&](const Tensor& given, const Tensor& rows) {
    if (given.defined() || !system.start_re.defined()) return given;
    return multiply_planes(v.index_select(0, rows), system.start_re.to(type),
                           system.start_im.to(type));
  };

  SystemOutput out;
  out.z = scan(v, lambda_re, lambda_im, start(initial.forward, u.layout->first()), u.layout,
               Direction::forward);
  out.final.forward = out.z.index_select(0, u.layout->last());
  out.y = torch::matmul(out.z, system.V.to(type).t()) + system.D.to(type) * u.values;
  if (system.bidirectional()) {
    out.z_reverse = scan(v, lambda_re, lambda_im, start(initial.reverse, u.layout->last()),
                         u.layout, Direction::reverse);
    out.final.reverse = out.z_reverse.index_select(0, u.layout->first());
    out.y = out.y + torch::matmul(out.z_reverse, system.V_reverse.to(type).t());
  }
  if (system.e.defined()) out.y = out.y + system.e.to(type);
  return out;
}

StepOutput step(const System& system, const Tensor& z, const Tensor& u) {
  if (system.bidirectional()) {
    throw std::invalid_argument(
        "step: a bidirectional layer needs the whole sequence; make it with bidirectional = false");
  }
  if (system.lambda_re.dim() != 1) {
    throw std::invalid_argument("step: a system with one λ per token has no next step");
  }
  check_input(u, system, "sequences");
  check_states(z, system, u.size(0));
  const auto type = u.scalar_type();
  Tensor v = torch::matmul(u, system.W.to(type).t());
  if (system.b.defined()) v = v + system.b.to(type);
  Tensor before = z;
  if (!z.defined() && system.start_re.defined()) {
    before = multiply_planes(v, system.start_re.to(type), system.start_im.to(type));
  }
  StepOutput out;
  out.z = before.defined()
              ? v + multiply_planes(before, system.lambda_re.to(type), system.lambda_im.to(type))
              : v;
  out.y = torch::matmul(out.z, system.V.to(type).t()) + system.D.to(type) * u;
  if (system.e.defined()) out.y = out.y + system.e.to(type);
  return out;
}

}  // namespace rotrnn
