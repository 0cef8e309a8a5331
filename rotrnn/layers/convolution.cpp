#include "rotrnn/layers/convolution.h"

#include <fmt/format.h>

#include <map>
#include <stdexcept>

#include "rotrnn/kernels/convolve.h"

namespace rotrnn {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// The numbers of the sequences of each length.
std::map<int64_t, std::vector<int64_t>> by_length(const std::vector<int64_t>& offsets) {
  std::map<int64_t, std::vector<int64_t>> groups;
  for (size_t i = 0; i + 1 < offsets.size(); ++i) {
    groups[offsets[i + 1] - offsets[i]].push_back(offsets[i]);
  }
  return groups;
}

// Sequences of one length out of rows [tokens, D], as [count, D, length].
Tensor gather(const Tensor& rows, const std::vector<int64_t>& begins, int64_t length) {
  std::vector<Tensor> parts;
  for (const int64_t begin : begins) parts.push_back(rows.narrow(0, begin, length));
  return torch::stack(parts).transpose(1, 2);
}

void scatter(const Tensor& rows, const std::vector<int64_t>& begins, int64_t length,
             const Tensor& values) {
  for (size_t i = 0; i < begins.size(); ++i) {
    rows.narrow(0, begins[i], length).copy_(values[static_cast<int64_t>(i)].t());
  }
}

// An autograd function takes defined tensors only: an empty one stands for none.
bool given(const Tensor& kernel) {
  return kernel.numel() > 0;
}

// Both kernels as one of a circular convolution of 2·length: the reverse one from the end.
Tensor circular(const Tensor& K, const Tensor& K_reverse, int64_t length) {
  if (!given(K_reverse)) return torch::constant_pad_nd(K.narrow(1, 0, length), {0, length});
  const Tensor back = K_reverse.narrow(1, 0, length).flip(1);
  return torch::cat({K.narrow(1, 0, length), back}, 1);
}

struct Convolution : torch::autograd::Function<Convolution> {
  static Tensor forward(AutogradContext* context, const Tensor& u, const Tensor& K,
                        const Tensor& K_reverse, const std::vector<int64_t>& offsets) {
    context->save_for_backward({u, K, K_reverse});
    context->saved_data["offsets"] = offsets;
    Tensor y = torch::empty_like(u);
    for (const auto& [length, begins] : by_length(offsets)) {
      const int64_t n = 2 * length;
      const Tensor spectrum = torch::fft_rfft(gather(u, begins, length), n) *
                              torch::fft_rfft(circular(K, K_reverse, length), n);
      scatter(y, begins, length, torch::fft_irfft(spectrum, n).narrow(2, 0, length));
    }
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    const auto saved = context->get_saved_variables();
    const Tensor &u = saved[0], &K = saved[1], &K_reverse = saved[2];
    const auto offsets = context->saved_data["offsets"].toIntVector();
    const Tensor dy = grads[0];
    Tensor du = torch::empty_like(u), dK = torch::zeros_like(K), dK_reverse;
    if (given(K_reverse)) dK_reverse = torch::zeros_like(K_reverse);
    for (const auto& [length, begins] : by_length(offsets)) {
      const int64_t n = 2 * length;
      const Tensor d = torch::fft_rfft(gather(dy, begins, length), n);
      const Tensor k = torch::fft_rfft(circular(K, K_reverse, length), n);
      scatter(du, begins, length, torch::fft_irfft(d * torch::conj(k), n).narrow(2, 0, length));
      const Tensor x = torch::fft_rfft(gather(u, begins, length), n);
      const Tensor dk = torch::fft_irfft((d * torch::conj(x)).sum(0), n);
      dK.narrow(1, 0, length).add_(dk.narrow(1, 0, length));
      if (given(K_reverse)) {
        dK_reverse.narrow(1, 0, length).add_(dk.narrow(1, length, length).flip(1));
      }
    }
    return {du, dK, dK_reverse, Tensor()};
  }
};

// The same by the kernel, whose own are [L, D].
struct FastConvolution : torch::autograd::Function<FastConvolution> {
  static Tensor forward(AutogradContext* context, const Tensor& u, const Tensor& K,
                        const Tensor& K_reverse, const std::vector<int64_t>& offsets) {
    context->save_for_backward({u, K, K_reverse});
    context->saved_data["offsets"] = offsets;
    const Tensor y = torch::empty_like(u);
    kernels::convolve_forward(at::get_num_threads(), {offsets.data(), offsets.size() - 1},
                              kernels_of(K, K_reverse), u.data_ptr<float>(), y.data_ptr<float>(),
                              false, scratch());
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    const auto saved = context->get_saved_variables();
    const Tensor &u = saved[0], &K = saved[1], &K_reverse = saved[2];
    const auto offsets = context->saved_data["offsets"].toIntVector();
    const Tensor dy = grads[0].contiguous();
    const Tensor du = torch::empty_like(u), dK = torch::empty_like(K);
    const Tensor dK_reverse = torch::empty_like(K_reverse);
    kernels::convolve_backward(at::get_num_threads(), {offsets.data(), offsets.size() - 1},
                               kernels_of(K, K_reverse), u.data_ptr<float>(), dy.data_ptr<float>(),
                               {du.data_ptr<float>(), false, dK.data_ptr<float>(),
                                given(K_reverse) ? dK_reverse.data_ptr<float>() : nullptr},
                               scratch());
    return {du, dK, dK_reverse, Tensor()};
  }

 private:
  static kernels::ConvolutionKernels kernels_of(const Tensor& K, const Tensor& K_reverse) {
    return {static_cast<size_t>(K.size(1)), static_cast<size_t>(K.size(0)), K.data_ptr<float>(),
            given(K_reverse) ? K_reverse.data_ptr<float>() : nullptr};
  }

  // Between calls nothing is in it; kept, since fresh pages are dear.
  static kernels::Arena& scratch() {
    thread_local kernels::Arena arena;
    return arena;
  }
};

}  // namespace

Tensor convolve(const Packed& u, const Tensor& K, const Tensor& K_reverse, bool fast) {
  const int64_t longest = u.layout->longest();
  if (u.values.dim() != 2 || K.dim() != 2 || K.size(0) != u.values.size(1) || K.size(1) < longest) {
    throw std::invalid_argument(
        fmt::format("convolution: rows [{}] with a kernel [{}] for sequences "
                    "of up to {} steps",
                    fmt::join(u.values.sizes(), ", "), fmt::join(K.sizes(), ", "), longest));
  }
  const Tensor reverse = K_reverse.defined() ? K_reverse : torch::empty({0}, K.options());
  const bool kernel =
      fast && u.values.device().is_cpu() && u.values.scalar_type() == torch::kFloat32;
  if (!kernel) return Convolution::apply(u.values, K, reverse, u.layout->offsets());
  const auto rows = [](const Tensor& t) { return given(t) ? t.t().contiguous() : t; };
  return FastConvolution::apply(u.values.contiguous(), rows(K), rows(reverse), u.layout->offsets());
}

}  // namespace rotrnn
