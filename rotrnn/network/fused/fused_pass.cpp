#include "rotrnn/network/fused/fused_pass.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "rotrnn/base/stopwatch.h"
#include "rotrnn/base/threads.h"
#include "rotrnn/kernels/block/embedding.h"
#include "rotrnn/kernels/block/linear.h"
#include "rotrnn/kernels/gemm/dense.h"
#include "rotrnn/layers/layer_table.h"
#include "rotrnn/network/block_config.h"
#include "rotrnn/network/dropout.h"
#include "rotrnn/network/fused/fused_system.h"
#include "rotrnn/network/fused/state_norms.h"

namespace rotrnn {
namespace {

using kernels::Stopwatch;

int threads_of(const FusedPass::Context& context) {
  return context.engine.threads > 0 ? context.engine.threads : kernels::available_threads();
}

double* block_seconds(const FusedPass::Context& context) {
  return context.engine.times ? &context.engine.times->blocks : nullptr;
}

const Diagonal<float>* diagonal_of(const FusedPass::Context& context, size_t block) {
  return std::get_if<Diagonal<float>>(&context.maps.rounded(block));
}

float inverse_deviation(float variance) {
  return static_cast<float>(1 / std::sqrt(static_cast<double>(variance) + kNormEpsilon));
}

}  // namespace

kernels::PackedSequences FusedPass::sequences() const {
  return {input_.batch.offsets.data(), input_.batch.sequences()};
}

kernels::BlockConfig FusedPass::config(const Context& context) const {
  kernels::BlockConfig c =
      block_config(context.options, context.maps.rounded(0), input_.mode, context.engine);
  c.keep = norms_ != nullptr                             ? kernels::Keep::all
           : !input_.backward                            ? kernels::Keep::nothing
           : context.engine.memory == MemoryMode::normal ? kernels::Keep::all
                                                         : kernels::Keep::boundaries;
  c.threads = threads_of(context);
  c.times = context.engine.times ? &context.engine.times->stages : nullptr;
  return c;
}

kernels::BlockParameters FusedPass::parameters(const Context& context, size_t block) const {
  const auto& b = parts_.blocks[block];
  kernels::BlockParameters p;
  p.layer = fused_layer(context.maps.rounded(block));
  p.norm_weight = norm_[block].weight;
  p.norm_bias = norm_[block].bias;
  p.value_weight = b.value.weight;
  p.value_bias = b.value.bias;
  p.gate_weight = b.gate.weight;
  p.gate_bias = b.gate.bias;
  return p;
}

kernels::BlockInput FusedPass::block_input(size_t block) const {
  kernels::BlockInput in;
  in.x = x_[block];
  in.mask1 = mask1_[block];
  in.mask2 = mask2_[block];
  if (!input_.initial.empty()) {
    in.initial = input_.initial[block].forward;
    in.initial_reverse = input_.initial[block].reverse;
  }
  return in;
}

kernels::BlockGradients FusedPass::block_gradients(const Context& context, size_t block,
                                                   const NetworkParts<float>& parts,
                                                   const NetworkInputGradient& input) {
  kernels::BlockGradients g;
  set_gradient(context.maps.rounded(block), context.maps.gradient(block), g);
  if (!input.initial.empty() && diagonal_of(context, block) != nullptr) {
    g.initial = input.initial[block].forward;
    g.initial_reverse = input.initial[block].reverse;
  }
  const auto& b = parts.blocks[block];
  g.norm_weight = b.norm.weight;
  g.norm_bias = b.norm.bias;
  g.value_weight = b.value.weight;
  g.value_bias = b.value.bias;
  g.gate_weight = b.gate.weight;
  g.gate_bias = b.gate.bias;
  return g;
}

// The layer of a block, where it does not mix channels.
std::optional<kernels::SequenceLayer> FusedPass::sequence_layer(const Context& context,
                                                                size_t block) {
  const auto* layer = std::get_if<Channel<float>>(&context.maps.rounded(block));
  if (layer == nullptr) return {};
  const ChannelBatch batch{sequences(), threads_of(context)};
  const float* initial = input_.initial.empty() ? nullptr : input_.initial[block].forward;
  float* final = input_.final.empty() ? nullptr : input_.final[block].forward;
  kernels::SequenceLayer out;
  out.forward = [=, this](const float* u, float* y) {
    channels_.forward(*layer, batch, {u, initial}, {y, final, kept_[block]});
    if (norms_ != nullptr)
      channel_norms(*layer, batch.sequences, u, batch.threads, (*norms_)[block]);
  };
  auto* gradient = std::get_if<Channel<float>>(&context.maps.gradient(block));
  out.backward = [=, this](const float* u, const float* dy, float* du) {
    channels_.backward(*layer, batch, {u, initial}, {dy, final_gradient_, kept_[block]},
                       {du, gradient, initial_out_});
  };
  return out;
}

void FusedPass::take_memory(const Context& context) {
  const auto depth = static_cast<size_t>(context.options.depth);
  const size_t size = input_.batch.rows() * static_cast<size_t>(context.options.width);
  saved_.reset();
  blocks_.assign(depth, {});
  x_.assign(depth + 1, nullptr);
  kept_.assign(depth, nullptr);
  for (size_t l = 0; l <= depth; ++l) {
    // Without a backward pass two buffers serve in turn.
    x_[l] = input_.backward || l < 2 ? saved_.take<float>(size) : x_[l - 2];
  }
}

void FusedPass::draw_masks(const Context& context) {
  const ModelOptions& m = context.options;
  const auto depth = static_cast<size_t>(m.depth), width = static_cast<size_t>(m.width);
  mask1_.assign(depth, nullptr);
  mask2_.assign(depth, nullptr);
  if (input_.mode != Mode::train || m.dropout == 0) return;
  const size_t size = input_.batch.sequences() * width;
  for (size_t l = 0; l < depth; ++l) {
    if (drops_before_gate(m.activation)) {
      draw_mask(input_.dropout, l, 0, width, m.dropout, mask1_[l] = saved_.take<float>(size));
    }
    if (drops_at_end(m.activation)) {
      draw_mask(input_.dropout, l, 1, width, m.dropout, mask2_[l] = saved_.take<float>(size));
    }
  }
}

// Weight and bias as they are; when a batch norm is evaluated, with its running statistics in them.
void FusedPass::set_norms(const Context& context) {
  const auto width = static_cast<size_t>(context.options.width);
  norm_.clear();
  for (const auto& b : parts_.blocks) {
    norm_.push_back(b.norm);
    if (context.options.norm == Norm::layer || input_.mode != Mode::evaluate) continue;
    LinearParts<float>& affine = norm_.back();
    affine = {saved_.take<float>(width), saved_.take<float>(width)};
    for (size_t d = 0; d < width; ++d) {
      affine.weight[d] = b.norm.weight[d] * inverse_deviation(b.running_var[d]);
      affine.bias[d] = b.norm.bias[d] - b.running_mean[d] * affine.weight[d];
    }
  }
}

Frontend::Input FusedPass::frontend_input(const Context& context) const {
  return {context.options.frontend, static_cast<size_t>(context.shape.inputs),
          context.weights,          samples_,
          input_.backward,          false,
          threads_of(context)};
}

// From here on the batch is that of the tokens.
void FusedPass::read_tokens(const Context& context) {
  samples_ = input_.batch;
  input_.batch = frontend_.forward(frontend_input(context));
}

void FusedPass::encode(const Context& context) {
  const size_t n = input_.batch.rows(), D = static_cast<size_t>(context.options.width);
  const auto& encoder = parts_.encoder;
  if (encoder.bias == nullptr) {
    kernels::embedding_forward(input_.batch.tokens.data(), n, encoder.weight, D, x_[0],
                               threads_of(context));
  } else if (context.options.frontend.used()) {  // many channels
    const kernels::Dense dense{input_.batch.values.size() / n, D, encoder.weight, encoder.bias};
    kernels::dense_forward(dense, input_.batch.values.data(), n, x_[0], threads_of(context));
  } else {
    kernels::linear_forward(input_.batch.values.data(), n,
                            static_cast<size_t>(context.shape.inputs), encoder.weight, encoder.bias,
                            D, x_[0], threads_of(context));
  }
}

void FusedPass::encode_backward(const Context& context, const float* dx, FlatArray& out,
                                float* dvalues) {
  const size_t n = input_.batch.rows(), D = static_cast<size_t>(context.options.width);
  const LinearParts<float> to = parts_of(context.weights.layout(), out).encoder;
  if (to.bias == nullptr) {
    kernels::embedding_backward(input_.batch.tokens.data(), n, dx, D,
                                static_cast<size_t>(context.shape.inputs), to.weight,
                                threads_of(context));
    return;
  }
  const std::span<const float> values = input_.batch.values;
  const FrontendOptions& frontend = context.options.frontend;
  if (!frontend.used()) {
    kernels::linear_backward(values.data(), n, static_cast<size_t>(context.shape.inputs),
                             parts_.encoder.weight, D, dx, to.weight, to.bias, dvalues,
                             threads_of(context));
    return;
  }
  const bool wanted = frontend.learn || dvalues != nullptr;
  float* dtokens = wanted ? saved_.take<float>(values.size()) : nullptr;
  kernels::dense_backward({values.size() / n, D, parts_.encoder.weight, parts_.encoder.bias},
                          values.data(), n, dx, to.weight, to.bias, dtokens, threads_of(context));
  frontend_.backward(frontend_input(context), dtokens, out, dvalues);
}

// running ← momentum·running + (1 - momentum)·batch; the variance is the biased one, so that what
// evaluation uses is what training used.
void FusedPass::move_statistics(const Context& context, size_t block) const {
  const auto& b = parts_.blocks[block];
  const auto share = static_cast<float>(1 - context.options.norm_momentum);
  for (size_t d = 0; d < static_cast<size_t>(context.options.width); ++d) {
    b.running_mean[d] += share * (static_cast<float>(blocks_[block].mean[d]) - b.running_mean[d]);
    b.running_var[d] += share * (static_cast<float>(blocks_[block].variance[d]) - b.running_var[d]);
  }
}

void FusedPass::run_blocks(const Context& context) {
  kernels::BlockConfig c = config(context);
  const size_t depth = blocks_.size(), D = c.D;
  const bool batch_norm = c.norm == Norm::batch && c.batch_statistics;
  std::vector<double> statistics[2] = {std::vector<double>(1 + 2 * D),
                                       std::vector<double>(1 + 2 * D)};
  for (size_t l = 0; l < depth; ++l) {
    kernels::BlockInput in = block_input(l);
    kernels::BlockOutput out;
    out.out = x_[l + 1];
    const auto channels = sequence_layer(context, l);
    c.sequence_layer = channels ? &*channels : nullptr;
    if (channels) {
      const auto& layer = std::get<Channel<float>>(context.maps.rounded(l));
      const size_t kept = channels_.kept_size(layer, {sequences(), c.threads});
      // With states it is run as a recurrence, which leaves nothing in `kept`.
      const bool states = !input_.initial.empty() || !input_.final.empty();
      if (kept > 0 && c.keep == kernels::Keep::all && !states) kept_[l] = saved_.take<float>(kept);
      in.initial = in.initial_reverse = nullptr;  // the channels' own
    } else if (!input_.final.empty()) {
      out.final = input_.final[l].forward;
      out.final_reverse = input_.final[l].reverse;
    }
    if (batch_norm && c.prenorm) {  // the epilogue of a block gathers the statistics of the next
      in.statistics = l == 0 ? nullptr : statistics[l % 2].data();
      out.statistics = statistics[(l + 1) % 2].data();
    }
    const Stopwatch watch(block_seconds(context));
    blocks_[l] = kernels::block_save(c, sequences(), saved_);
    kernels::block_forward(c, sequences(), parameters(context, l), in, out, blocks_[l], scratch_);
    if (batch_norm && input_.mode == Mode::train) move_statistics(context, l);
    if (norms_ != nullptr && !channels) block_norms(context, l, (*norms_)[l]);
  }
}

std::span<const float> FusedPass::forward(const Context& context, const NetworkInput& input) {
  input_ = input;
  parts_ = parts_of(context.weights);
  read_tokens(context);
  take_memory(context);
  draw_masks(context);
  set_norms(context);
  encode(context);
  run_blocks(context);
  pending_ = input.backward;
  const float* y = head_.forward(context.options, context.shape, input_.batch, parts_, x_.back(),
                                 threads_of(context), saved_);
  const size_t rows = output_rows(context.options, context.shape, input_.batch);
  return {y, rows * static_cast<size_t>(context.shape.outputs)};
}

void FusedPass::backward(const Context& context, const NetworkOutputGradient& gradient,
                         FlatArray& out, const NetworkInputGradient& input) {
  if (!pending_) {
    throw std::logic_error("backward: there is no forward pass that has kept what it needs");
  }
  pending_ = false;
  kernels::BlockConfig c = config(context);
  const size_t depth = blocks_.size(), D = c.D, size = input_.batch.rows() * D;
  const NetworkParts<float> parts = parts_of(context.weights.layout(), out);
  // The gradients of two neighbouring outputs. Only the head reads the last output, so one of them
  // takes its place.
  float* dx[2];
  dx[depth % 2] = saved_.take<float>(size);
  dx[(depth + 1) % 2] = x_.back();
  head_.backward(parts_, parts, gradient.y, dx[depth % 2], c.threads, saved_);
  std::vector<float> rest[2] = {std::vector<float>(2 * D), std::vector<float>(2 * D)};
  for (size_t l = depth; l-- > 0;) {
    kernels::OutputGradient g;
    g.value = dx[(l + 1) % 2];
    kernels::BlockGradients to = block_gradients(context, l, parts, input);
    kernels::BlockInput in = block_input(l);
    const auto channels = sequence_layer(context, l);
    c.sequence_layer = channels ? &*channels : nullptr;
    const BlockStates<const float> final =
        gradient.final.empty() ? BlockStates<const float>{} : gradient.final[l];
    if (channels) {
      final_gradient_ = final.forward;
      initial_out_ = input.initial.empty() ? nullptr : input.initial[l].forward;
      in.initial = in.initial_reverse = nullptr;
    } else {
      g.final = final.forward;
      g.final_reverse = final.reverse;
    }
    if (l + 1 < depth) {  // what the norm of the next block still owes
      g.out = x_[l + 1];
      g.q = rest[(l + 1) % 2].data();
      g.s = g.q + D;
    }
    to.x = dx[l % 2];
    if (l > 0) to.pending = rest[l % 2].data();
    {
      const Stopwatch watch(block_seconds(context));
      kernels::block_backward(c, sequences(), parameters(context, l), in, blocks_[l], g, to,
                              scratch_);
    }
    if (norm_[l].weight == parts_.blocks[l].norm.weight) continue;
    // From the gradients of the affine: a = weight/√(var + ε), c = bias - mean·a.
    const auto& b = parts_.blocks[l];
    for (size_t d = 0; d < D; ++d) {
      to.norm_weight[d] = (to.norm_weight[d] - b.running_mean[d] * to.norm_bias[d]) *
                          inverse_deviation(b.running_var[d]);
    }
  }
  encode_backward(context, dx[0], out, input.values);
}

void FusedPass::block_norms(const Context& context, size_t block, std::vector<float>& out) const {
  const LayerStates states = layer_kind(context.options.layer).states(context.options);
  diagonal_norms(blocks_[block].z[0], blocks_[block].stride, input_.batch.rows(), states,
                 threads_of(context), out);
}

void FusedPass::norms(const Context& context, const PackedInput& batch,
                      std::vector<std::vector<float>>& out) {
  input_ = {};
  input_.batch = batch;
  input_.mode = Mode::observe;
  out.resize(static_cast<size_t>(context.options.depth));
  norms_ = &out;
  parts_ = parts_of(context.weights);
  read_tokens(context);
  take_memory(context);
  draw_masks(context);
  set_norms(context);
  encode(context);
  run_blocks(context);
  norms_ = nullptr;
  pending_ = false;
}

}  // namespace rotrnn
