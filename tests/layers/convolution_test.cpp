#include "rotrnn/layers/convolution.h"

#include <gtest/gtest.h>

#include "rotrnn/layers/fused_channels.h"
#include "rotrnn/layers/real_fft.h"
#include "rotrnn/layers/s4d.h"
#include "tests/support/tensors.h"

// Convolutions by kernels against LibTorch's operations.

namespace rotrnn {
namespace {

using test::relative_error;
using torch::Tensor;

// y and the gradients of u, K and K_reverse.
std::vector<Tensor> run(const Packed& input, const Tensor& K, const Tensor& K_reverse,
                        torch::ScalarType type, bool fast) {
  auto leaf = [&](const Tensor& t) {
    return t.defined() ? t.detach().to(type).clone().requires_grad_() : t;
  };
  const Tensor u = leaf(input.values), a = leaf(K), b = leaf(K_reverse);
  const Tensor y = convolve(input.with(u), a, b, fast);
  (y * input.values.flip(0).to(type)).sum().backward();
  std::vector<Tensor> out{y.detach(), u.grad(), a.grad()};
  if (b.defined()) out.push_back(b.grad());
  return out;
}

TEST(Convolution, TheKernelEqualsFftsInDouble) {
  torch::manual_seed(4);
  for (const bool bidirectional : {false, true}) {
    const Packed u(torch::randn({700, 11}, torch::kFloat64),
                   std::vector<int64_t>{0, 300, 301, 600, 700});
    const Tensor K = torch::randn({11, 320}, torch::kFloat64);
    const Tensor K_reverse = bidirectional ? torch::randn({11, 320}, torch::kFloat64) : Tensor();
    const auto exact = run(u, K, K_reverse, torch::kFloat64, false);
    const auto plain = run(u, K, K_reverse, torch::kFloat32, false);
    const auto fast = run(u, K, K_reverse, torch::kFloat32, true);
    for (size_t i = 0; i < exact.size(); ++i) {
      EXPECT_LE(relative_error(fast[i], exact[i]), 4 * relative_error(plain[i], exact[i]) + 1e-6)
          << i;
    }
  }
}

TEST(Convolution, InverseFftIsLibTorchs) {
  torch::manual_seed(5);
  for (const int64_t n : {1, 2, 7, 40}) {
    const Tensor parts = torch::randn({2, 5, n / 2 + 1, 2}, torch::kFloat64).requires_grad_();
    const Tensor weight = torch::randn({2, 5, n}, torch::kFloat64);
    auto both = [&](const Tensor& y) {
      return std::make_pair(y.detach(), torch::autograd::grad({(y * weight).sum()}, {parts})[0]);
    };
    const auto ours = both(inverse_real_fft(torch::view_as_complex(parts), n));
    const auto theirs = both(torch::fft_irfft(torch::view_as_complex(parts), n));
    EXPECT_LE(relative_error(ours.first, theirs.first), 1e-14) << n;
    EXPECT_LE(relative_error(ours.second, theirs.second), 1e-14) << n;
  }
}

// The passes of a recurrence by themselves: y, du and the gradients of its
// planes.
std::vector<Tensor> run(const FusedChannels& channels, const Packed& u, const Tensor& dy) {
  kernels::Arena scratch, work;
  const auto& offsets = u.layout->offsets();
  std::vector<Tensor> out{torch::empty_like(u.values), torch::empty_like(u.values)};
  std::vector<float*> gradients;
  for (const Tensor& t : channels.tensors) {
    out.push_back(torch::empty_like(t));
    gradients.push_back(out.back().data_ptr<float>());
  }
  ChannelPass p;
  p.sequences = {offsets.data(), offsets.size() - 1};
  p.threads = 2;
  p.scratch = &scratch;
  p.work = &work;
  p.u = u.values.data_ptr<float>();
  p.y = out[0].data_ptr<float>();
  channels.forward(p);
  p.dy = dy.data_ptr<float>();
  p.du = out[1].data_ptr<float>();
  p.dt = &gradients;
  channels.backward(p);
  return out;
}

TEST(Convolution, RecurrencesByTheirKernelsEqualRecurrences) {
  torch::manual_seed(6);
  for (const bool bidirectional : {false, true}) {
    S4DOptions o;
    o.width = 19;
    o.state = 64;
    o.bidirectional = bidirectional;
    const S4D layer(o, 3);
    const ChannelSystem s = layer->channels();
    const auto plane = [](const Tensor& t) {
      return t.defined() ? t.detach().t().to(torch::kFloat32).contiguous() : t;
    };
    const ChannelPlanes planes{plane(s.lambda_re), plane(s.lambda_im),    plane(s.c_re),
                               plane(s.c_im),      plane(s.c_reverse_re), plane(s.c_reverse_im)};
    const Packed u(torch::randn({3000, 19}), std::vector<int64_t>{0, 1200, 2200, 2201, 3000});
    const Tensor dy = torch::randn({3000, 19});
    const auto one = run(fused_recurrence(planes, 1200, false), u, dy);
    const auto other = run(fused_recurrence(planes, 1200, true), u, dy);
    for (size_t i = 0; i < one.size(); ++i) {
      EXPECT_LE(relative_error(other[i], one[i]), 2e-5) << i;
    }
  }
}

}  // namespace
}  // namespace rotrnn
