#include "rotrnn/layers/real_fft.h"

#include <ATen/Parallel.h>

#include <algorithm>

namespace rotrnn {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// f on parts of the rows of `in`, into the rows of `out`.
template <typename F>
void for_rows(const Tensor& in, const Tensor& out, const F& f) {
  const Tensor from = in.flatten(0, -2), to = out.view({from.size(0), -1});
  const int64_t rows = from.size(0);
  const int64_t part =
      std::max<int64_t>(1, (rows + at::get_num_threads() - 1) / at::get_num_threads());
  at::parallel_for(0, (rows + part - 1) / part, 1, [&](int64_t begin, int64_t end) {
    const torch::NoGradGuard no_grad;  // known to each thread by itself
    for (int64_t i = begin; i < end; ++i) {
      const int64_t at = i * part, count = std::min(part, rows - at);
      to.narrow(0, at, count).copy_(f(from.narrow(0, at, count)));
    }
  });
}

struct Inverse : torch::autograd::Function<Inverse> {
  static Tensor forward(AutogradContext* context, const Tensor& spectrum, int64_t n) {
    context->saved_data["n"] = n;
    auto shape = spectrum.sizes().vec();
    shape.back() = n;
    const Tensor out = torch::empty(shape, torch::real(spectrum).options());
    for_rows(spectrum.detach(), out, [n](const Tensor& rows) { return torch::fft_irfft(rows, n); });
    return out;
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    const int64_t n = context->saved_data["n"].toInt();
    const Tensor given = grads[0].contiguous();
    auto shape = given.sizes().vec();
    shape.back() = n / 2 + 1;
    const Tensor out =
        torch::empty(shape, given.options().dtype(c10::toComplexType(given.scalar_type())));
    // Every frequency stands for itself and its conjugate, but for the first
    // and an even n's last.
    Tensor weight = torch::full({n / 2 + 1}, 2. / static_cast<double>(n), given.options());
    weight[0] = 1. / static_cast<double>(n);
    if (n % 2 == 0) weight[n / 2] = 1. / static_cast<double>(n);
    for_rows(given, out, [&](const Tensor& rows) { return torch::fft_rfft(rows).mul_(weight); });
    return {out, Tensor()};
  }
};

}  // namespace

Tensor inverse_real_fft(const Tensor& spectrum, int64_t n) {
  if (!spectrum.device().is_cpu()) return torch::fft_irfft(spectrum, n);
  return Inverse::apply(spectrum, n);
}

}  // namespace rotrnn
