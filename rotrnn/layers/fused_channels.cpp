#include "rotrnn/layers/fused_channels.h"

#include <algorithm>
#include <memory>

#include "rotrnn/kernels/channel.h"
#include "rotrnn/kernels/convolve.h"
#include "rotrnn/kernels/products.h"

namespace rotrnn {
namespace {

using torch::Tensor;

float* data(const Tensor& t) {
  return t.defined() ? t.data_ptr<float>() : nullptr;
}

// What the passes hold must not hold the graph.
Tensor plain(const Tensor& t) {
  return t.defined() ? t.detach() : t;
}

struct Convolution {
  Tensor K, K_reverse, coefficients;

  kernels::ConvolutionKernels kernels() const {
    return {static_cast<size_t>(K.size(1)), static_cast<size_t>(K.size(0)), data(K),
            data(K_reverse)};
  }
  size_t orders() const { return static_cast<size_t>(coefficients.size(0)); }

  void forward(const ChannelPass& p) const {
    kernels::convolve_forward(p.threads, p.sequences, kernels(), p.u, p.y, false, *p.scratch);
    if (!coefficients.defined()) return;
    kernels::products_forward(p.threads, p.sequences, kernels().D, orders(), data(coefficients),
                              p.u, p.y);
  }

  void backward(const ChannelPass& p) const {
    size_t next = 1;
    kernels::ConvolutionGradients g{p.du, false, (*p.dt)[0], nullptr};
    if (K_reverse.defined()) g.K_reverse = (*p.dt)[next++];
    kernels::convolve_backward(p.threads, p.sequences, kernels(), p.u, p.dy, g, *p.scratch);
    if (!coefficients.defined()) return;
    kernels::products_backward(p.threads, p.sequences, kernels().D, orders(), data(coefficients),
                               p.u, p.dy, p.du, (*p.dt)[next], *p.scratch);
  }
};

/// The gradients of λ and of what reads one direction, in the order of the
/// tensors.
struct PlaneGradients {
  float *lambda_re, *lambda_im, *c_re, *c_im;
};

struct Recurrence {
  ChannelPlanes planes;  // detached
  int64_t longest = 0;   // of the kernels
  Tensor K, K_reverse;   // [longest, D], from forward on

  size_t D() const { return static_cast<size_t>(planes.c_re.size(1)); }
  bool bidirectional() const { return planes.c_reverse_re.defined(); }
  size_t size() const { return static_cast<size_t>(planes.c_re.numel()); }

  /// With what reads the states in both directions, or one of them as if it
  /// were forward.
  kernels::ChannelSystem system(bool both, bool reverse) const {
    kernels::ChannelSystem s;
    s.D = D();
    s.N = static_cast<size_t>(planes.c_re.size(0));
    s.lambda_re = data(planes.lambda_re);
    s.lambda_im = data(planes.lambda_im);
    s.c_re = data(reverse ? planes.c_reverse_re : planes.c_re);
    s.c_im = data(reverse ? planes.c_reverse_im : planes.c_im);
    if (!both) return s;
    s.c_reverse_re = data(planes.c_reverse_re);
    s.c_reverse_im = data(planes.c_reverse_im);
    return s;
  }

  void forward(const ChannelPass& p) const {
    kernels::channel_forward({p.threads}, p.sequences, system(true, false), {.u = p.u}, {.y = p.y},
                             *p.scratch);
  }

  void backward(const ChannelPass& p) const {
    const std::vector<float*>& d = *p.dt;
    kernels::ChannelGradients g;
    g.u = p.du;
    g.lambda_re = d[0], g.lambda_im = d[1], g.c_re = d[2], g.c_im = d[3];
    if (bidirectional()) g.c_reverse_re = d[4], g.c_reverse_im = d[5];
    kernels::channel_backward({p.threads}, p.sequences, system(true, false), {.u = p.u},
                              {.y = p.dy}, g, *p.scratch);
  }

  // ------------------------------------------------------------------ as convolution

  size_t kernel_size() const { return static_cast<size_t>(longest) * D(); }

  /// 1 and then zeros, of every channel.
  float* impulse(const ChannelPass& p) const {
    auto* u = p.work->take<float>(kernel_size());
    std::fill_n(u, D(), 1.0f);
    std::fill_n(u + D(), kernel_size() - D(), 0.0f);
    return u;
  }

  kernels::ConvolutionKernels kernels() const {
    return {D(), static_cast<size_t>(longest), data(K), data(K_reverse)};
  }

  void forward_kernels(const ChannelPass& p) {
    const int64_t offsets[] = {0, longest};
    p.work->reset();
    const float* u = impulse(p);
    K = torch::empty({longest, planes.c_re.size(1)});
    if (bidirectional()) K_reverse = torch::empty_like(K);
    for (const bool reverse : {false, true}) {
      if (reverse && !bidirectional()) continue;
      kernels::channel_forward({p.threads}, {offsets, 1}, system(false, reverse), {.u = u},
                               {.y = data(reverse ? K_reverse : K)}, *p.scratch);
    }
    kernels::convolve_forward(p.threads, p.sequences, kernels(), p.u, p.y, false, *p.scratch);
  }

  void backward_kernels(const ChannelPass& p) const {
    p.work->reset();
    kernels::ConvolutionGradients g{p.du, false, p.work->take<float>(kernel_size()), nullptr};
    if (bidirectional()) g.K_reverse = p.work->take<float>(kernel_size());
    kernels::convolve_backward(p.threads, p.sequences, kernels(), p.u, p.dy, g, *p.scratch);
    const std::vector<float*>& d = *p.dt;
    kernel_gradients(p, false, g.K, {d[0], d[1], d[2], d[3]});
    if (!bidirectional()) return;
    auto* lambda = p.work->take<float>(2 * size());
    kernel_gradients(p, true, g.K_reverse, {lambda, lambda + size(), d[4], d[5]});
    for (size_t i = 0; i < size(); ++i) {
      d[0][i] += lambda[i];
      d[1][i] += lambda[size() + i];
    }
  }

  void kernel_gradients(const ChannelPass& p, bool reverse, const float* dK,
                        const PlaneGradients& to) const {
    const int64_t offsets[] = {0, longest};
    kernels::ChannelGradients g;
    g.u = p.work->take<float>(kernel_size());
    g.lambda_re = to.lambda_re, g.lambda_im = to.lambda_im, g.c_re = to.c_re, g.c_im = to.c_im;
    kernels::channel_backward({p.threads}, {offsets, 1}, system(false, reverse), {.u = impulse(p)},
                              {.y = dK}, g, *p.scratch);
  }
};

// Cycles for a token and channel, both passes, measured on the machine of
// docs/performance.md: 3 for a state of the recurrence, 14 for the convolution.
// Kernels are a recurrence over one sequence.
bool convolution_is_less(const Layout& layout, int64_t N) {
  const auto n = static_cast<double>(layout.tokens());
  const double states = 3 * static_cast<double>(N);
  return states * static_cast<double>(layout.longest()) + 14 * n < states * n;
}

}  // namespace

FusedChannels fused_convolution(const Tensor& K, const Tensor& K_reverse,
                                const Tensor& coefficients) {
  FusedChannels out;
  for (const Tensor& t : {K, K_reverse, coefficients}) {
    if (t.defined()) out.tensors.push_back(t);
  }
  const Convolution c{plain(K), plain(K_reverse), plain(coefficients)};
  out.forward = [c](const ChannelPass& p) { c.forward(p); };
  out.backward = [c](const ChannelPass& p) { c.backward(p); };
  return out;
}

FusedChannels fused_recurrence(const ChannelPlanes& p, int64_t longest, bool convolve) {
  FusedChannels out;
  for (const Tensor& t :
       {p.lambda_re, p.lambda_im, p.c_re, p.c_im, p.c_reverse_re, p.c_reverse_im}) {
    if (t.defined()) out.tensors.push_back(t);
  }
  auto r = std::make_shared<Recurrence>();
  r->planes = {plain(p.lambda_re), plain(p.lambda_im),    plain(p.c_re),
               plain(p.c_im),      plain(p.c_reverse_re), plain(p.c_reverse_im)};
  r->longest = longest;
  if (convolve) {
    out.forward = [r](const ChannelPass& pass) { r->forward_kernels(pass); };
    out.backward = [r](const ChannelPass& pass) { r->backward_kernels(pass); };
  } else {
    out.forward = [r](const ChannelPass& pass) { r->forward(pass); };
    out.backward = [r](const ChannelPass& pass) { r->backward(pass); };
  }
  return out;
}

FusedChannels fused_recurrence(const ChannelPlanes& planes, const Layout& layout) {
  return fused_recurrence(planes, layout.longest(),
                          convolution_is_less(layout, planes.c_re.size(0)));
}

}  // namespace rotrnn
