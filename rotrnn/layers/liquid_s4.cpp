#include "rotrnn/layers/liquid_s4.h"

#include <fmt/format.h>

#include <stdexcept>

#include "rotrnn/layers/convolution.h"
#include "rotrnn/layers/fused_map.h"
#include "rotrnn/layers/registry.h"

namespace rotrnn {
namespace {

using torch::Tensor;

// Rows one step later in every sequence, 0 at its first.
Tensor late(const Tensor& rows, const Layout& layout) {
  const Tensor moved = torch::constant_pad_nd(rows.narrow(0, 0, rows.size(0) - 1), {0, 0, 1, 0});
  return moved.index_fill(0, layout.first(), 0);
}

// binom(w, p) ≥ bound, without overflow.
bool has_combinations(int64_t w, int64_t p, int64_t bound) {
  double count = 1;  // exact as far as it matters: bound is a number of tokens
  for (int64_t i = 0; i < p; ++i) {
    count = count * static_cast<double>(w - i) / static_cast<double>(i + 1);
  }
  return count > static_cast<double>(bound) - 0.5;
}

// The last T of the p-combinations of the last w of T inputs, from the last one on: row numbers
// [p][T], counted from `begin`.
void add_places(int64_t T, int64_t p, int64_t begin, std::vector<std::vector<int64_t>>& places) {
  int64_t w = p;
  while (w < T && !has_combinations(w, p, T)) ++w;
  if (w >= T) {
    throw std::invalid_argument(fmt::format(
        "Liquid-S4: a sequence of {} tokens is too short for products of {} inputs in "
        "mode \"reference\"; use mode = \"causal\", a smaller degree, or longer sequences",
        T, p));
  }
  std::vector<int64_t> chosen(p);
  for (int64_t i = 0; i < p; ++i) chosen[i] = w - p + i;
  for (int64_t t = 0; t < T; ++t) {
    for (int64_t i = 0; i < p; ++i) places[i].push_back(begin + T - w + chosen[i]);
    // The combination before: the last number that can be smaller is, and those behind it are as
    // large as they can be.
    int64_t i = p - 1;
    while (i > 0 && chosen[i] == chosen[i - 1] + 1) --i;
    --chosen[i];
    for (int64_t k = i + 1; k < p; ++k) chosen[k] = w - p + k;
  }
}

Tensor reference_products(const Packed& u, int64_t p) {
  std::vector<std::vector<int64_t>> places(p);
  const auto& offsets = u.layout->offsets();
  for (size_t i = 0; i + 1 < offsets.size(); ++i) {
    add_places(offsets[i + 1] - offsets[i], p, offsets[i], places);
  }
  Tensor product;
  for (const auto& rows : places) {
    const Tensor index = torch::tensor(rows, torch::kInt64).to(u.values.device());
    const Tensor factor = u.values.index_select(0, index);
    product = product.defined() ? product * factor : factor;
  }
  return product;
}

// 2Re Σ_n, [D].
Tensor twice_real_sum(const Tensor& x) {
  return 2 * torch::real(x).sum(-1);
}

}  // namespace

LiquidS4Impl::LiquidS4Impl(const LiquidS4Options& options, uint64_t seed, uint64_t stream)
    : S4Impl(options.s4, seed, stream, /*clip=*/false), options_(options) {
  check(options_);
}

LiquidS4Impl::Parts LiquidS4Impl::parts(bool fast) const {
  const Dplr system = this->system();
  const Tensor b = system.step * input() / (1 - system.step * system.Lambda / 2);
  const Tensor s = twice_real_sum(b);
  const bool kb = options_.form == LiquidForm::kb;
  const bool power = options_.coefficient == LiquidCoefficient::power;
  // 2Re Σ_n C_n w_n is K_0 of the system whose B̄ is w: so C itself, which would take dense
  // matrices, is not needed.
  std::vector<Tensor> read;
  if (!kb && power) {
    Tensor w = b;
    for (int64_t p = 2; p <= options_.degree; ++p) read.push_back(w = w * b);
  } else if (!kb) {
    read.push_back(b);
  }
  const Kernels kernels = kernels_of(read, fast);
  std::vector<Tensor> c;
  for (int64_t p = 2; p <= options_.degree; ++p) {
    if (kb) {
      c.push_back(torch::pow(s, p - 1));
    } else if (power) {
      c.push_back(kernels.first[p - 2]);
    } else {
      c.push_back(torch::pow(s, (int64_t{1} << (p - 1)) - 1) * kernels.first[0]);
    }
  }
  const Tensor all = torch::stack(c);
  return {kernels.K, kernels.K_reverse, options_.train_liquid ? all : all.detach()};
}

Tensor LiquidS4Impl::coefficients() const {
  return parts(/*fast=*/false).coefficients;
}

FusedChannels LiquidS4Impl::fused_channels(const Layout& layout, double* seconds) const {
  if (!fusible()) return Layer::fused_channels(layout, seconds);
  grow(layout.longest());
  const std::vector<Tensor> t = fused_map(
      parameters(),
      [this] {
        const Parts p = parts(/*fast=*/true);
        std::vector<Tensor> all{p.K.t(), p.coefficients};
        if (p.K_reverse.defined()) all.push_back(p.K_reverse.t());
        return all;
      },
      seconds);
  FusedChannels out = fused_convolution(t[0], t.size() > 2 ? t[2] : Tensor(), t[1]);
  out.D = D;
  return out;
}

SystemOutput LiquidS4Impl::forward(const Packed& u, const States& initial, bool fast) const {
  check_call(u, initial);
  grow(u.layout->longest());
  const auto type = u.values.scalar_type();
  const auto [K, K_reverse, exact] = parts(fast);
  const Tensor kernel = K.to(type), c = exact.to(type);
  const bool causal = options_.mode == LiquidMode::causal;
  Tensor terms, product = u.values;
  for (int64_t p = 2; p <= options_.degree; ++p) {
    product = causal ? u.values * late(product, *u.layout) : reference_products(u, p);
    const Tensor term = c[p - 2] * product;
    terms = terms.defined() ? terms + term : term;
  }
  SystemOutput out;
  out.y = D.to(type) * u.values;
  if (options_.form == LiquidForm::pb) {
    out.y = out.y + terms;
  } else if (K_reverse.defined()) {
    out.y = out.y + convolve(u.with(terms), kernel, {}, fast);
  }
  const bool joined = options_.form == LiquidForm::kb && !K_reverse.defined();
  const Tensor driven = joined ? u.values + terms : u.values;
  out.y = out.y + convolve(u.with(driven), kernel,
                           K_reverse.defined() ? K_reverse.to(type) : Tensor(), fast);
  return out;
}

void LiquidS4Impl::check_causal() const {
  if (options_.mode == LiquidMode::reference) {
    throw std::invalid_argument(
        "Liquid-S4 in mode \"reference\" is not causal: it has no step and is not exported; train "
        "it with model.liquid_s4.mode = \"causal\"");
  }
}

ChannelRecurrence LiquidS4Impl::recurrence() const {
  check_causal();
  if (length() == 0) grow(1);
  ChannelRecurrence r = S4Impl::recurrence();
  r.liquid = coefficients();
  r.liquid_inside = options_.form == LiquidForm::kb;
  return r;
}

LiquidS4Steps LiquidS4Impl::steps() const {
  check_causal();
  if (length() == 0) grow(1);
  return {S4Impl::steps(), coefficients(), options_.form};
}

StepOutput LiquidS4Impl::step(const LiquidS4Steps& s, const Tensor& z, const Tensor& u) {
  const int64_t orders = s.coefficients.size(0), width = s.s4.C.size(0);
  const int64_t states = 2 * s.s4.C.numel();
  if (z.defined() && (z.dim() != 2 || z.size(1) != states + orders * width)) {
    throw std::invalid_argument(
        fmt::format("state: expected [sequences, {}] (that of S4, and {} inputs), got [{}]",
                    states + orders * width, orders, fmt::join(z.sizes(), ", ")));
  }
  const auto type = u.scalar_type();
  const Tensor line = z.defined() ? z.narrow(1, states, orders * width)
                                  : torch::zeros({u.size(0), orders * width}, u.options());
  Tensor terms = torch::zeros_like(u), product = u;
  for (int64_t i = 0; i < orders; ++i) {
    product = product * line.narrow(1, i * width, width);
    terms = terms + s.coefficients[i].to(type) * product;
  }
  const bool kb = s.form == LiquidForm::kb;
  const Tensor state = z.defined() ? z.narrow(1, 0, states).contiguous() : Tensor();
  StepOutput out = S4Impl::step(s.s4, state, kb ? u + terms : u);
  // D meets the input alone.
  out.y = kb ? out.y - s.s4.D.to(type) * terms : out.y + terms;
  out.z = torch::cat({out.z, u, line.narrow(1, 0, (orders - 1) * width)}, 1);
  return out;
}

void LiquidS4Impl::pretty_print(std::ostream& stream) const {
  const S4Options& o = options_.s4;
  stream << fmt::format(
      "rotrnn::LiquidS4(width={}, state={}, length={}, degree={}, "
      "bidirectional={})",
      o.width, o.state, length(), options_.degree, o.bidirectional);
}

std::shared_ptr<Layer> make_liquid_s4(const LayerOptions& options, uint64_t seed, uint64_t stream) {
  return std::make_shared<LiquidS4Impl>(options.liquid_s4_options(), seed, stream);
}

}  // namespace rotrnn
