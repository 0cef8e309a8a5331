#include "rotrnn/model/fused.h"

#include <array>
#include <stdexcept>

#include "rotrnn/kernels/arena.h"
#include "rotrnn/kernels/block.h"
#include "rotrnn/kernels/embedding.h"
#include "rotrnn/kernels/linear.h"
#include "rotrnn/kernels/pooling.h"
#include "rotrnn/kernels/stopwatch.h"
#include "rotrnn/kernels/threads.h"

namespace rotrnn {
namespace {

using kernels::Stopwatch;
using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// The tensors of a block in the order they enter the autograd function. Those that are undefined
// are left out, since such a function takes defined tensors only.
enum Slot {
  kLambdaRe,
  kLambdaIm,
  kW,
  kV,
  kVReverse,
  kSkip,
  kB,
  kE,
  kStartRe,
  kStartIm,
  kNormWeight,
  kNormBias,
  kValueWeight,
  kValueBias,
  kGateWeight,
  kGateBias,
  kInitial,
  kInitialReverse,
  kSlots
};

std::array<Tensor, kSlots> slots_of(const FusedBlock& b) {
  const System& s = b.system;
  return {s.lambda_re,
          s.lambda_im,
          s.W,
          s.V,
          s.V_reverse,
          s.D,
          s.b,
          s.e,
          s.start_re,
          s.start_im,
          b.norm_weight,
          b.norm_bias,
          b.value_weight,
          b.value_bias,
          b.gate_weight,
          b.gate_bias,
          b.initial.forward,
          b.initial.reverse};
}

// Where each tensor is in the flat list: the encoder first, then block by block; -1: not there.
struct Index {
  int input = -1, encoder_weight = -1, encoder_bias = -1;
  std::vector<std::array<int, kSlots>> blocks;
  std::vector<std::vector<int>> channels;  // the tensors of a block's channels
};

// What the kernels need to know that is not a tensor with a gradient.
struct Facts {
  ModelOptions options;
  EngineOptions engine;
  bool batch_statistics = true, keep = true;
  std::vector<int64_t> offsets;
  Index index;
  std::vector<Tensor> masks1, masks2;
  std::vector<std::optional<FusedChannels>> channels;

  /// Final states that a block gives.
  size_t states() const { return channels.front() ? 0 : options.bidirectional ? 2 : 1; }
};

kernels::Activation to_kernels(Activation a) {
  switch (a) {
    case Activation::full_glu:
      return kernels::Activation::full_glu;
    case Activation::exact_glu:
      return kernels::Activation::exact_glu;
    case Activation::half_glu2:
      return kernels::Activation::half_glu2;
    case Activation::gelu:
      return kernels::Activation::gelu;
    default:
      return kernels::Activation::half_glu1;
  }
}

int threads_of(const EngineOptions& engine) {
  return engine.threads > 0 ? engine.threads : kernels::available_threads();
}

}  // namespace

struct WorkspacePool::Workspace : torch::CustomClassHolder {
  Facts facts;
  kernels::Arena saved, scratch;
  kernels::Arena channel_scratch, channel_work;
  std::vector<kernels::BlockSaved> blocks;
  std::vector<float*> x;  // [depth + 1] inputs of the blocks and the last output
  // Gradients handed to autograd; kept, so that it copies or adds them and never owns them.
  std::vector<Tensor> gradients;
  bool pending = false;  // forward is done and backward is not

  const float* pointer(const variable_list& tensors, int i) const {
    return i < 0 ? nullptr : tensors[static_cast<size_t>(i)].data_ptr<float>();
  }

  kernels::Sequences sequences() const { return {facts.offsets.data(), facts.offsets.size() - 1}; }

  kernels::BlockConfig config(const variable_list& tensors) const {
    const ModelOptions& m = facts.options;
    kernels::BlockConfig c;
    c.D = static_cast<size_t>(m.width);
    const int lambda = facts.index.blocks[0][kLambdaRe];
    if (lambda >= 0) c.S = static_cast<size_t>(tensors[static_cast<size_t>(lambda)].size(-1));
    c.activation = to_kernels(m.activation);
    c.norm = m.norm == NormKind::batch ? kernels::Norm::batch : kernels::Norm::layer;
    c.prenorm = m.prenorm;
    c.bidirectional = m.bidirectional && lambda >= 0;
    c.batch_statistics = facts.batch_statistics;
    c.keep = !facts.keep                                 ? kernels::Keep::nothing
             : facts.engine.memory == MemoryMode::normal ? kernels::Keep::all
                                                         : kernels::Keep::boundaries;
    c.threads = threads_of(facts.engine);
    c.times = facts.engine.times ? &facts.engine.times->stages : nullptr;
    return c;
  }

  kernels::BlockParameters parameters(const variable_list& t, size_t block) const {
    const auto& i = facts.index.blocks[block];
    kernels::BlockParameters p;
    p.system.lambda_re = pointer(t, i[kLambdaRe]);
    p.system.lambda_im = pointer(t, i[kLambdaIm]);
    if (i[kLambdaRe] >= 0) {
      const Tensor& lambda = t[static_cast<size_t>(i[kLambdaRe])];
      p.system.lambda_stride = lambda.dim() == 2 ? static_cast<size_t>(lambda.size(1)) : 0;
    }
    p.system.W = pointer(t, i[kW]);
    p.system.V = pointer(t, i[kV]);
    p.system.V_reverse = pointer(t, i[kVReverse]);
    p.system.D = pointer(t, i[kSkip]);
    p.system.b = pointer(t, i[kB]);
    p.system.e = pointer(t, i[kE]);
    p.system.kappa_re = pointer(t, i[kStartRe]);
    p.system.kappa_im = pointer(t, i[kStartIm]);
    p.norm_weight = pointer(t, i[kNormWeight]);
    p.norm_bias = pointer(t, i[kNormBias]);
    p.glu_w1 = pointer(t, i[kValueWeight]);
    p.glu_b1 = pointer(t, i[kValueBias]);
    p.glu_w2 = pointer(t, i[kGateWeight]);
    p.glu_b2 = pointer(t, i[kGateBias]);
    return p;
  }

  kernels::BlockInput block_input(const variable_list& t, size_t block) const {
    const auto& i = facts.index.blocks[block];
    kernels::BlockInput in;
    in.x = x[block];
    auto mask = [](const Tensor& m) { return m.defined() ? m.data_ptr<float>() : nullptr; };
    in.mask1 = mask(facts.masks1[block]);
    in.mask2 = mask(facts.masks2[block]);
    in.initial = pointer(t, i[kInitial]);
    in.initial_reverse = pointer(t, i[kInitialReverse]);
    return in;
  }

  // The layer of a block, where it is no System.
  std::optional<kernels::Mixer> mixer(size_t block) {
    if (!facts.channels[block]) return {};
    const FusedChannels* channels = &*facts.channels[block];
    ChannelPass pass;
    pass.sequences = sequences();
    pass.threads = threads_of(facts.engine);
    pass.scratch = &channel_scratch;
    pass.work = &channel_work;
    kernels::Mixer out;
    out.forward = [channels, pass](const float* u, float* y) mutable {
      pass.u = u;
      pass.y = y;
      channels->forward(pass);
    };
    out.backward = [this, channels, pass, block](const float* u, const float* dy,
                                                 float* du) mutable {
      std::vector<float*> of_tensors;
      for (const int i : facts.index.channels[block]) of_tensors.push_back(gradient(i));
      pass.u = u;
      pass.dy = dy;
      pass.du = du;
      pass.dt = &of_tensors;
      channels->backward(pass);
    };
    return out;
  }

  void encode(const variable_list& t) {
    const auto n = static_cast<size_t>(facts.offsets.back());
    const auto D = static_cast<size_t>(facts.options.width);
    const Tensor& input = t[static_cast<size_t>(facts.index.input)];
    const float* weight = pointer(t, facts.index.encoder_weight);
    if (facts.index.encoder_bias < 0) {
      kernels::embedding_forward(input.data_ptr<int64_t>(), n, weight, D, x[0],
                                 threads_of(facts.engine));
    } else {
      kernels::linear_forward(input.data_ptr<float>(), n, static_cast<size_t>(input.size(1)),
                              weight, pointer(t, facts.index.encoder_bias), D, x[0],
                              threads_of(facts.engine));
    }
  }

  Tensor pool() const {
    const auto D = static_cast<size_t>(facts.options.width);
    const auto rows = static_cast<int64_t>(facts.offsets.size()) - 1;
    if (facts.options.pooling == Pooling::none) {
      // A copy: the memory below it is used again by the next pass.
      return torch::from_blob(x.back(), {facts.offsets.back(), facts.options.width}).clone();
    }
    Tensor out = torch::empty({rows, facts.options.width});
    if (facts.options.pooling == Pooling::mean) {
      kernels::pool_mean(sequences(), x.back(), D, out.data_ptr<float>(), threads_of(facts.engine));
    } else {
      kernels::pool_last(sequences(), x.back(), D, out.data_ptr<float>());
    }
    return out;
  }

  variable_list forward(const variable_list& t) {
    kernels::BlockConfig c = config(t);
    const size_t depth = facts.index.blocks.size(), D = c.D;
    const auto n = static_cast<size_t>(facts.offsets.back());
    const auto batch = static_cast<int64_t>(facts.offsets.size()) - 1;
    saved.reset();
    blocks.assign(depth, {});
    x.assign(depth + 1, nullptr);
    float* turn[2] = {};  // without a backward pass two buffers serve in turn
    for (size_t l = 0; l <= depth; ++l) {
      if (facts.keep || l < 2) {
        x[l] = saved.take<float>(n * D);
        if (l < 2) turn[l] = x[l];
      } else {
        x[l] = turn[l % 2];
      }
    }
    encode(t);
    const bool statistics_on = c.norm == kernels::Norm::batch && c.batch_statistics && c.prenorm;
    std::vector<double> statistics[2] = {std::vector<double>(1 + 2 * D),
                                         std::vector<double>(1 + 2 * D)};
    variable_list finals, means;
    for (size_t l = 0; l < depth; ++l) {
      kernels::BlockInput in = block_input(t, l);
      kernels::BlockOutput out;
      out.out = x[l + 1];
      const auto mixer = this->mixer(l);
      c.mixer = mixer ? &*mixer : nullptr;
      if (!mixer) {
        finals.push_back(torch::empty({batch, static_cast<int64_t>(2 * c.S)}));
        out.final = finals.back().data_ptr<float>();
      }
      if (c.bidirectional) {
        finals.push_back(torch::empty({batch, static_cast<int64_t>(2 * c.S)}));
        out.final_reverse = finals.back().data_ptr<float>();
      }
      if (statistics_on) {  // the epilogue of a block gathers the statistics of the next
        in.statistics = l == 0 ? nullptr : statistics[l % 2].data();
        out.statistics = statistics[(l + 1) % 2].data();
      }
      const Stopwatch watch(facts.engine.times ? &facts.engine.times->blocks : nullptr);
      blocks[l] = kernels::block_save(c, sequences(), saved);
      kernels::block_forward(c, sequences(), parameters(t, l), in, out, blocks[l], scratch);
      if (c.norm == kernels::Norm::batch && c.batch_statistics) {
        for (const double* values : {blocks[l].mean, blocks[l].variance}) {
          means.push_back(torch::tensor(at::ArrayRef<double>(values, D), torch::kFloat64));
        }
      }
    }
    pending = facts.keep;
    variable_list result{pool()};
    result.insert(result.end(), finals.begin(), finals.end());
    result.insert(result.end(), means.begin(), means.end());
    return result;
  }

  // The gradient buffers, one for each tensor of the list, made once.
  void prepare_gradients(const variable_list& t) {
    if (gradients.size() != t.size()) gradients.assign(t.size(), {});
    for (size_t i = 0; i < t.size(); ++i) {
      if (t[i].scalar_type() != torch::kFloat32) continue;  // token numbers
      if (!gradients[i].defined() || gradients[i].sizes() != t[i].sizes()) {
        gradients[i] = torch::empty(t[i].sizes(), torch::kFloat32);
      }
    }
  }

  float* gradient(int i) {
    return i < 0 ? nullptr : gradients[static_cast<size_t>(i)].data_ptr<float>();
  }

  kernels::BlockGradients block_gradients(size_t block) {
    const auto& i = facts.index.blocks[block];
    kernels::BlockGradients g;
    g.lambda_re = gradient(i[kLambdaRe]);
    g.lambda_im = gradient(i[kLambdaIm]);
    g.W = gradient(i[kW]);
    g.V = gradient(i[kV]);
    g.V_reverse = gradient(i[kVReverse]);
    g.D = gradient(i[kSkip]);
    g.b = gradient(i[kB]);
    g.e = gradient(i[kE]);
    g.kappa_re = gradient(i[kStartRe]);
    g.kappa_im = gradient(i[kStartIm]);
    g.norm_weight = gradient(i[kNormWeight]);
    g.norm_bias = gradient(i[kNormBias]);
    g.glu_w1 = gradient(i[kValueWeight]);
    g.glu_b1 = gradient(i[kValueBias]);
    g.glu_w2 = gradient(i[kGateWeight]);
    g.glu_b2 = gradient(i[kGateBias]);
    g.initial = gradient(i[kInitial]);
    g.initial_reverse = gradient(i[kInitialReverse]);
    return g;
  }

  // The gradient of the last output, from that of what was pooled.
  void unpool(const Tensor& grad, float* dx) const {
    const auto D = static_cast<size_t>(facts.options.width);
    const auto n = static_cast<size_t>(facts.offsets.back());
    if (!grad.defined()) {
      std::fill(dx, dx + n * D, 0.0f);
    } else if (facts.options.pooling == Pooling::mean) {
      kernels::pool_mean_backward(sequences(), grad.data_ptr<float>(), D, dx,
                                  threads_of(facts.engine));
    } else if (facts.options.pooling == Pooling::last) {
      kernels::pool_last_backward(sequences(), grad.data_ptr<float>(), D, dx,
                                  threads_of(facts.engine));
    } else {
      std::copy_n(grad.data_ptr<float>(), n * D, dx);
    }
  }

  void backward_encoder(const variable_list& t, const float* dx) {
    const auto n = static_cast<size_t>(facts.offsets.back());
    const auto D = static_cast<size_t>(facts.options.width);
    const Tensor& input = t[static_cast<size_t>(facts.index.input)];
    const Tensor& weight = t[static_cast<size_t>(facts.index.encoder_weight)];
    if (facts.index.encoder_bias < 0) {
      kernels::embedding_backward(input.data_ptr<int64_t>(), n, dx, D,
                                  static_cast<size_t>(weight.size(0)),
                                  gradient(facts.index.encoder_weight), threads_of(facts.engine));
    } else {
      kernels::linear_backward(
          input.data_ptr<float>(), n, static_cast<size_t>(input.size(1)), weight.data_ptr<float>(),
          D, dx, gradient(facts.index.encoder_weight), gradient(facts.index.encoder_bias),
          gradient(facts.index.input), threads_of(facts.engine));
    }
  }

  // grads: of the pooled output, then of the final states.
  void backward(const variable_list& t, const variable_list& grads) {
    if (!pending) {
      throw std::runtime_error(
          "backward ran twice through one pass of the "
          "fused kernels; use the reference kernels for "
          "retain_graph");
    }
    pending = false;
    kernels::BlockConfig c = config(t);
    const size_t depth = blocks.size(), D = c.D;
    const auto n = static_cast<size_t>(facts.offsets.back());
    prepare_gradients(t);
    float* dx[2] = {saved.take<float>(n * D), saved.take<float>(n * D)};
    unpool(grads[0], dx[depth % 2]);
    std::vector<float> rest[2] = {std::vector<float>(2 * D), std::vector<float>(2 * D)};
    const size_t directions = c.bidirectional ? 2 : 1;
    for (size_t l = depth; l-- > 0;) {
      auto final_gradient = [&](size_t direction) -> const float* {
        const Tensor& g = grads[1 + l * directions + direction];
        return g.defined() ? g.data_ptr<float>() : nullptr;
      };
      kernels::OutputGradient g;
      g.value = dx[(l + 1) % 2];
      const auto mixer = this->mixer(l);
      c.mixer = mixer ? &*mixer : nullptr;
      if (!mixer) g.final = final_gradient(0);
      if (c.bidirectional) g.final_reverse = final_gradient(1);
      if (l + 1 < depth) {  // what the norm of the next block still owes
        g.out = x[l + 1];
        g.q = rest[(l + 1) % 2].data();
        g.s = g.q + D;
      }
      kernels::BlockGradients out = block_gradients(l);
      out.x = dx[l % 2];
      if (l > 0) out.pending = rest[l % 2].data();
      const Stopwatch watch(facts.engine.times ? &facts.engine.times->blocks : nullptr);
      kernels::block_backward(c, sequences(), parameters(t, l), block_input(t, l), blocks[l], g,
                              out, scratch);
    }
    backward_encoder(t, dx[0]);
  }
};

WorkspacePool::WorkspacePool() = default;
WorkspacePool::~WorkspacePool() = default;

c10::intrusive_ptr<WorkspacePool::Workspace> WorkspacePool::acquire() {
  for (const auto& workspace : workspaces_) {
    if (workspace.use_count() == 1) return workspace;  // nobody but the pool has it
  }
  workspaces_.push_back(c10::make_intrusive<Workspace>());
  return workspaces_.back();
}

namespace {

using Workspace = WorkspacePool::Workspace;

struct Run : torch::autograd::Function<Run> {
  static variable_list forward(AutogradContext* context, at::TensorList tensors,
                               const c10::intrusive_ptr<Workspace>& workspace) {
    const variable_list t = tensors.vec();
    variable_list out = workspace->forward(t);
    if (workspace->facts.keep) {
      context->save_for_backward(t);
      context->saved_data["workspace"] = c10::IValue::make_capsule(workspace);
    }
    // Statistics of the batch are for the running statistics, not for gradients.
    const Facts& facts = workspace->facts;
    const size_t first = 1 + facts.states() * facts.index.blocks.size();
    context->mark_non_differentiable({out.begin() + static_cast<int64_t>(first), out.end()});
    context->set_materialize_grads(false);
    return out;
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    const auto capsule = context->saved_data["workspace"].toCapsule();
    auto* workspace = static_cast<Workspace*>(capsule.get());
    const variable_list t = context->get_saved_variables();
    variable_list given;
    for (const Tensor& g : grads) given.push_back(g.defined() ? g.contiguous() : g);
    workspace->backward(t, given);
    variable_list out = workspace->gradients;
    out.emplace_back();  // the workspace has no gradient
    return out;
  }
};

}  // namespace

FusedOutput run_fused(const FusedNetwork& network, WorkspacePool& pool) {
  Facts facts;
  std::vector<Tensor> tensors;
  bool needs_gradient = false;
  auto add = [&](const Tensor& t) {
    if (!t.defined()) return -1;
    needs_gradient |= t.requires_grad();
    tensors.push_back(t.contiguous());
    return static_cast<int>(tensors.size()) - 1;
  };
  facts.index.input = add(network.input.values);
  facts.index.encoder_weight = add(network.encoder_weight);
  facts.index.encoder_bias = add(network.encoder_bias);
  for (const FusedBlock& block : network.blocks) {
    facts.index.blocks.emplace_back();
    const auto slots = slots_of(block);
    for (size_t i = 0; i < kSlots; ++i) facts.index.blocks.back()[i] = add(slots[i]);
    facts.index.channels.emplace_back();
    if (block.channels) {
      for (const Tensor& t : block.channels->tensors) facts.index.channels.back().push_back(add(t));
    }
    facts.channels.push_back(block.channels);
    facts.masks1.push_back(block.mask1);
    facts.masks2.push_back(block.mask2);
  }
  facts.options = network.options;
  facts.engine = network.engine;
  facts.batch_statistics = network.batch_statistics;
  facts.keep = needs_gradient && torch::GradMode::is_enabled();
  facts.offsets = network.input.layout->offsets();

  const size_t states = facts.states();

  const auto workspace = pool.acquire();
  workspace->facts = std::move(facts);
  const at::TensorList list(tensors);
  const variable_list out = Run::apply(list, workspace);

  FusedOutput result;
  result.pooled = out[0];
  size_t next = 1;
  for (size_t l = 0; l < network.blocks.size(); ++l) {
    States final;
    if (states > 0) final.forward = out[next++];
    if (states > 1) final.reverse = out[next++];
    result.final.push_back(final);
  }
  while (next < out.size()) {
    result.batch_mean.push_back(out[next++]);
    result.batch_var.push_back(out[next++]);
  }
  return result;
}

}  // namespace rotrnn
