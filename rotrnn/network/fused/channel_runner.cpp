#include "rotrnn/network/fused/channel_runner.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "rotrnn/kernels/recurrence/products.h"

namespace rotrnn {
namespace {

using kernels::PackedSequences;

bool is_convolution(const Channel<float>& layer) {
  return !layer.K.empty();
}

size_t width_of(const Channel<float>& layer) {
  return static_cast<size_t>(layer.width);
}

size_t longest_of(const PackedSequences& sequences) {
  size_t longest = 0;
  for (size_t i = 0; i < sequences.count; ++i) {
    longest = std::max(longest, sequences.end(i) - sequences.begin(i));
  }
  return longest;
}

// Cycles per token and channel, both passes, measured on the machine of docs/performance.md: 3
// for a state of the recurrence, 14 for the convolution. Kernels are a recurrence over one
// sequence.
bool convolution_is_less(const PackedSequences& sequences, int64_t N) {
  const auto n = static_cast<double>(sequences.tokens());
  const double states = 3 * static_cast<double>(N);
  return states * static_cast<double>(longest_of(sequences)) + 14 * n < states * n;
}

void check_states(bool initial, bool final) {
  if (initial) {
    throw std::invalid_argument(
        "initial state: this layer is run as a convolution, which begins with none; run its "
        "recurrence step by step instead");
  }
  if (final) {
    throw std::invalid_argument(
        "final state: this layer is run as a convolution, which shows none; run its "
        "recurrence step by step instead");
  }
}

void check_kernels(const Channel<float>& layer, const PackedSequences& sequences) {
  const size_t longest = longest_of(sequences);
  if (static_cast<size_t>(layer.length) < longest) {
    throw std::invalid_argument("convolution: a kernel of " + std::to_string(layer.length) +
                                " steps for sequences of up to " + std::to_string(longest));
  }
}

kernels::ConvolutionKernels kernels_of(const Channel<float>& layer, bool both = true) {
  return {width_of(layer), static_cast<size_t>(layer.length), layer.K.data(),
          both && layer.bidirectional() ? layer.K_reverse.data() : nullptr};
}

/// The products of a layer, by the kernel that its kind asks for.
struct LayerProducts {
  const Channel<float>& layer;
  const ChannelBatch& batch;

  /// Added to y.
  void forward(const float* u, float* y) const {
    const bool reference = layer.kind == ProductUse::reference;
    (reference ? kernels::reference_products_forward : kernels::products_forward)(
        batch.threads, batch.sequences, width_of(layer), static_cast<size_t>(layer.orders),
        layer.products.data(), u, y);
  }

  /// Added to du.
  void backward(const float* u, const float* dy, float* du, float* dc,
                kernels::Arena& scratch) const {
    const bool reference = layer.kind == ProductUse::reference;
    (reference ? kernels::reference_products_backward : kernels::products_backward)(
        batch.threads, batch.sequences, width_of(layer), static_cast<size_t>(layer.orders),
        layer.products.data(), u, dy, du, dc, scratch);
  }
};

/// With what reads the states in both directions, or one of them as if it were forward.
kernels::ChannelLayer directions_of(const Channel<float>& layer, bool both, bool reverse) {
  kernels::ChannelLayer out;
  point_to(layer, out);
  out.D = nullptr;  // the block's
  if (both) return out;
  if (reverse) out.c_re = out.c_reverse_re, out.c_im = out.c_reverse_im;
  out.c_reverse_re = out.c_reverse_im = nullptr;
  return out;
}

// Fields as long as the layer's; D stays as it is.
void shape_like(const Channel<float>& layer, Channel<float>& out) {
  std::vector<float> D = std::move(out.D);
  out.length = layer.length, out.orders = layer.orders;
  out.kind = layer.kind;
  size_like(layer, out);
  out.D = std::move(D);
}

}  // namespace

bool ChannelRunner::as_kernels(const Channel<float>& layer, const ChannelBatch& batch) const {
  if (is_convolution(layer) || batch.sequences.tokens() == 0) return false;
  if (way_ != Way::less_work) return way_ == Way::convolution;
  return convolution_is_less(batch.sequences, layer.states);
}

size_t ChannelRunner::kept_size(const Channel<float>& layer, const ChannelBatch& batch) const {
  if (!as_kernels(layer, batch)) return 0;
  return (layer.bidirectional() ? 2 : 1) * longest_of(batch.sequences) * width_of(layer);
}

void ChannelRunner::forward(const Channel<float>& layer, const ChannelBatch& batch,
                            const ChannelRunInput& in, const ChannelRunOutput& out) {
  work_.reset();
  if (is_convolution(layer)) {
    check_states(in.initial != nullptr, out.final != nullptr);
    check_kernels(layer, batch.sequences);
    return convolution_forward(layer, batch, in.u, out.y);
  }
  if (layer.orders > 0) throw std::logic_error("channel runner: products of a recurrence");
  const bool states = in.initial != nullptr || out.final != nullptr;
  if (states || !as_kernels(layer, batch)) {
    kernels::channel_forward({batch.threads}, batch.sequences, directions_of(layer, true, false),
                             {.u = in.u, .initial = in.initial}, {.y = out.y, .final = out.final},
                             scratch_);
    return;
  }
  float* kernels = out.kept != nullptr ? out.kept : work_.take<float>(kept_size(layer, batch));
  impulse_forward(layer, batch, kernels);
  const size_t D = width_of(layer), longest = longest_of(batch.sequences);
  const kernels::ConvolutionKernels both{D, longest, kernels,
                                         layer.bidirectional() ? kernels + longest * D : nullptr};
  kernels::convolve_forward(batch.threads, batch.sequences, both, in.u, out.y, false, scratch_);
}

void ChannelRunner::backward(const Channel<float>& layer, const ChannelBatch& batch,
                             const ChannelRunInput& in, const ChannelRunOutputGradient& gradient,
                             const ChannelRunGradient& out) {
  work_.reset();
  shape_like(layer, *out.layer);
  if (is_convolution(layer)) {
    check_states(in.initial != nullptr || out.initial != nullptr, gradient.final != nullptr);
    check_kernels(layer, batch.sequences);
    return convolution_backward(layer, batch, in.u, gradient.y, out.u, *out.layer);
  }
  if (layer.orders > 0) throw std::logic_error("channel runner: products of a recurrence");
  const bool states = in.initial != nullptr || out.initial != nullptr || gradient.final != nullptr;
  if (!states && as_kernels(layer, batch)) {
    return impulse_backward(layer, batch, in.u, gradient.y, gradient.kept, out.u, *out.layer);
  }
  Channel<float>& to = *out.layer;
  kernels::ChannelGradients g;
  g.u = out.u;
  point_to(to, g.layer);
  g.layer.D = nullptr;
  g.initial = out.initial;
  kernels::channel_backward({batch.threads}, batch.sequences, directions_of(layer, true, false),
                            {.u = in.u, .initial = in.initial},
                            {.y = gradient.y, .final = gradient.final}, g, scratch_);
}

// ---------------------------------------------------------------------------------- convolutions

// Products inside drive the forward kernel alone. So where there is a reverse kernel, they are
// convolved by themselves.
void ChannelRunner::convolution_forward(const Channel<float>& layer, const ChannelBatch& batch,
                                        const float* u, float* y) {
  const LayerProducts products{layer, batch};
  const bool inside = layer.orders > 0 && layer.kind == ProductUse::inside;
  const auto convolve = [&](bool both, const float* driving, bool add) {
    kernels::convolve_forward(batch.threads, batch.sequences, kernels_of(layer, both), driving, y,
                              add, scratch_);
  };
  if (!inside) {
    convolve(true, u, false);
    if (layer.orders > 0) products.forward(u, y);
    return;
  }
  const size_t size = batch.sequences.tokens() * width_of(layer);
  auto* terms = work_.take<float>(size);
  if (layer.bidirectional()) {
    std::fill_n(terms, size, 0.0f);
    products.forward(u, terms);
    convolve(true, u, false);
    convolve(false, terms, true);
  } else {
    std::copy_n(u, size, terms);
    products.forward(u, terms);
    convolve(false, terms, false);
  }
}

void ChannelRunner::convolution_backward(const Channel<float>& layer, const ChannelBatch& batch,
                                         const float* u, const float* dy, float* du,
                                         Channel<float>& out) {
  const size_t size = batch.sequences.tokens() * width_of(layer);
  const LayerProducts products{layer, batch};
  const bool inside = layer.orders > 0 && layer.kind == ProductUse::inside;
  const bool both = layer.bidirectional();
  kernels::ConvolutionGradients g{du, false, out.K.data(), both ? out.K_reverse.data() : nullptr};
  if (!inside) {
    kernels::convolve_backward(batch.threads, batch.sequences, kernels_of(layer), u, dy, g,
                               scratch_);
    if (layer.orders > 0) products.backward(u, dy, du, out.products.data(), scratch_);
    return;
  }
  float *terms = work_.take<float>(size), *dterms = work_.take<float>(size);
  if (both) {
    std::fill_n(terms, size, 0.0f);
    products.forward(u, terms);
    float* dK = work_.take<float>(out.K.size());
    kernels::convolve_backward(batch.threads, batch.sequences, kernels_of(layer), u, dy, g,
                               scratch_);
    kernels::convolve_backward(batch.threads, batch.sequences, kernels_of(layer, false), terms, dy,
                               {dterms, false, dK, nullptr}, scratch_);
    for (size_t i = 0; i < out.K.size(); ++i) out.K[i] += dK[i];
  } else {
    std::copy_n(u, size, terms);
    products.forward(u, terms);
    g.u = dterms;
    kernels::convolve_backward(batch.threads, batch.sequences, kernels_of(layer), terms, dy, g,
                               scratch_);
    std::copy_n(dterms, size, du);
  }
  products.backward(u, dterms, du, out.products.data(), scratch_);
}

// ------------------------------------------------------------------- recurrences as convolutions

// K and K_reverse [longest, D] one after the other: what 1 and then zeros give in each direction.
void ChannelRunner::impulse_forward(const Channel<float>& layer, const ChannelBatch& batch,
                                    float* kernels) {
  const size_t D = width_of(layer), size = longest_of(batch.sequences) * D;
  const int64_t offsets[] = {0, static_cast<int64_t>(size / D)};
  auto* u = work_.take<float>(size);
  std::fill_n(u, D, 1.0f);
  std::fill_n(u + D, size - D, 0.0f);
  for (const bool reverse : {false, true}) {
    if (reverse && !layer.bidirectional()) continue;
    kernels::channel_forward({batch.threads}, {offsets, 1}, directions_of(layer, false, reverse),
                             {.u = u}, {.y = kernels + (reverse ? size : 0)}, scratch_);
  }
}

void ChannelRunner::impulse_backward(const Channel<float>& layer, const ChannelBatch& batch,
                                     const float* u, const float* dy, const float* kernels,
                                     float* du, Channel<float>& out) {
  const size_t D = width_of(layer), longest = longest_of(batch.sequences), size = longest * D;
  const int64_t offsets[] = {0, static_cast<int64_t>(longest)};
  const bool both = layer.bidirectional();
  if (kernels == nullptr) {
    auto* again = work_.take<float>(kept_size(layer, batch));
    impulse_forward(layer, batch, again);
    kernels = again;
  }
  kernels::ConvolutionGradients g{du, false, work_.take<float>(size), nullptr};
  if (both) g.K_reverse = work_.take<float>(size);
  kernels::convolve_backward(batch.threads, batch.sequences,
                             {D, longest, kernels, both ? kernels + size : nullptr}, u, dy, g,
                             scratch_);
  auto* impulse = work_.take<float>(size);
  std::fill_n(impulse, D, 1.0f);
  std::fill_n(impulse + D, size - D, 0.0f);
  const size_t states = layer.lambda_re.size();
  float *lambda = work_.take<float>(2 * states), *unused = work_.take<float>(size);
  for (const bool reverse : {false, true}) {
    if (reverse && !both) continue;
    kernels::ChannelGradients to;
    to.u = unused;
    to.layer.lambda_re = reverse ? lambda : out.lambda_re.data();
    to.layer.lambda_im = reverse ? lambda + states : out.lambda_im.data();
    to.layer.c_re = (reverse ? out.c_reverse_re : out.c_re).data();
    to.layer.c_im = (reverse ? out.c_reverse_im : out.c_im).data();
    kernels::channel_backward({batch.threads}, {offsets, 1}, directions_of(layer, false, reverse),
                              {.u = impulse}, {.y = reverse ? g.K_reverse : g.K}, to, scratch_);
  }
  for (size_t i = 0; i < states && both; ++i) {
    out.lambda_re[i] += lambda[i];
    out.lambda_im[i] += lambda[states + i];
  }
}

}  // namespace rotrnn
