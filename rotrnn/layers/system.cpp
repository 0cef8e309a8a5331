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

void check_states(const Tensor& given, const System& system, const Layout& layout) {
  if (!given.defined()) return;
  if (given.dim() != 2 || given.size(0) != layout.sequences() ||
      given.size(1) != 2 * system.states()) {
    throw std::invalid_argument(fmt::format(
        "initial state: expected [{}, {}] (sequences, real and imaginary planes), got [{}]",
        layout.sequences(), 2 * system.states(), fmt::join(given.sizes(), ", ")));
  }
}

}  // namespace

SystemOutput run_system(const System& system, const Packed& u, const States& initial) {
  if (u.values.dim() != 2 || u.values.size(1) != system.width()) {
    throw std::invalid_argument(fmt::format("layer input: expected [tokens, {}], got [{}]",
                                            system.width(), fmt::join(u.values.sizes(), ", ")));
  }
  if (initial.reverse.defined() && !system.bidirectional()) {
    throw std::invalid_argument(
        "initial state: a reverse state was given to a layer that runs "
        "forward only");
  }
  check_states(initial.forward, system, *u.layout);
  check_states(initial.reverse, system, *u.layout);

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

}  // namespace rotrnn
