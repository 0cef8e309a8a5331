#pragma once

#include <torch/torch.h>

#include <memory>
#include <mutex>
#include <numeric>
#include <ostream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "rotrnn/layers/layer_table.h"
#include "rotrnn/layers/registry.h"
#include "rotrnn/network/network.h"
#include "rotrnn/network/single_layer.h"
#include "rotrnn/training/optimiser.h"

/// Layers and whole networks as modules of LibTorch, for programs that have a LibTorch of their own
/// and compile this header with it; they link rotrnn::engine_std, the engine on threads of the
/// standard library.
///
///     rotrnn::LayerOptions options;
///     options.layer = "s5", options.width = 16, options.state = 32;
///     rotrnn::nn::Layer layer(options, /*seed=*/0);
///     torch::Tensor y = layer->forward(u, {0, 1000, 1500});  // u [1500, 16]: two sequences
///     y.square().mean().backward();
///
/// They compute in float32 on the CPU, on as many threads as torch::get_num_threads() says.
/// Parameters and buffers have the names of the engine, so a checkpoint of the program fits.
///
/// Any number of graphs may be alive, also after their module is gone. Each runs backward once,
/// retain_graph or not, and has no gradients of gradients. As everywhere in torch, a parameter must
/// not change between forward and backward: S4 and Liquid-S4 change theirs when a sequence is
/// longer than all before. Passes of one module in several threads run one after the other.
namespace rotrnn::nn {

using torch::Tensor;
using torch::autograd::variable_list;

/// The states of a layer before the first or after the last tokens, [sequences, state_size()];
/// network/states.h says what is in them. Undefined: zero, or the layer has none.
struct States {
  Tensor forward, reverse;
};

struct LayerResult {
  Tensor y;
  States final;
};

struct NetworkResult {
  Tensor y;
  std::vector<States> final;  // one for each block
};

/// Where the sequences of a packed batch begin, and at last its number of rows: sequence i has the
/// rows offsets[i] to offsets[i + 1] - 1, at least one.
using Offsets = std::vector<int64_t>;

// ---------------------------------------------------------------- what modules are made of

namespace detail {

template <class... Parts>
[[noreturn]] void fail(const Parts&... parts) {
  throw std::invalid_argument(c10::str("rotrnn: ", parts...));
}

inline void check_type(const Tensor& t, const std::string& name, at::ScalarType type) {
  if (!t.defined()) fail(name, " is not defined");
  if (t.is_cpu() && t.scalar_type() == type && t.layout() == torch::kStrided) return;
  fail(name, " is ", t.scalar_type(), " on ", t.device(), "; it must be ", type,
       " on cpu, which is where the engine computes; convert it with to()");
}

inline void check_shape(const Tensor& t, const std::string& name, const std::string& wanted,
                        bool fits) {
  if (!fits) fail(name, " has the shape ", t.sizes(), "; it must be ", wanted);
}

/// One forward pass and, after it, its backward pass. It has the memory of both.
class Pass : public torch::CustomClassHolder {
 public:
  bool keep = false;  // what backward needs

  virtual variable_list forward(const variable_list& inputs) = 0;
  /// The gradients of the inputs; undefined or left out at the end where there are none.
  virtual variable_list backward(const variable_list& gradients) = 0;
};

/// The autograd function of every module.
struct PassFunction : torch::autograd::Function<PassFunction> {
  using Context = torch::autograd::AutogradContext;

  static variable_list forward(Context* context, const c10::intrusive_ptr<Pass>& pass,
                               at::TensorList inputs) {
    variable_list outputs = pass->forward(inputs.vec());
    context->save_for_backward(inputs.vec());  // for torch's check that nothing has changed
    context->saved_data["pass"] = c10::IValue::make_capsule(pass);
    context->set_materialize_grads(false);
    return outputs;
  }

  static variable_list backward(Context* context, const variable_list& gradients) {
    if (torch::GradMode::is_enabled()) {
      fail("backward with create_graph: these layers have no gradients of gradients");
    }
    const size_t inputs = context->get_saved_variables().size();
    const auto found = context->saved_data.find("pass");
    if (found == context->saved_data.end()) {
      fail(
          "backward for the second time: these layers keep what it needs once, with retain_graph "
          "too; run forward again");
    }
    const auto holder = found->second.toCapsule();
    context->saved_data.clear();
    variable_list out = static_cast<Pass&>(*holder).backward(gradients);
    out.resize(inputs);
    out.insert(out.begin(), Tensor());  // the pass itself
    return out;
  }
};

/// With a graph if gradients may be needed.
inline variable_list run(const c10::intrusive_ptr<Pass>& pass, const variable_list& inputs) {
  bool wanted = false;
  for (const Tensor& input : inputs) wanted = wanted || input.requires_grad();
  pass->keep = wanted && torch::GradMode::is_enabled();
  if (pass->keep) return PassFunction::apply(pass, at::TensorList(inputs));
  const torch::NoGradGuard no_grad;
  return pass->forward(inputs);
}

/// A tensor of a module and the values that the engine computes with. Both are the same memory,
/// until loading, cloning or to() gives the tensor memory of its own; then values are copied.
struct Binding {
  std::string name;
  Tensor tensor, values;

  void to_engine() const {
    // to() converts integers as well; those of layers are small enough for any type.
    if (values.scalar_type() == torch::kFloat32) check_type(tensor, name, torch::kFloat32);
    check_shape(tensor, name, c10::str(values.sizes()), tensor.sizes() == values.sizes());
    if (tensor.data_ptr() != values.data_ptr()) values.copy_(tensor);
  }
  /// After the engine has changed the values.
  void from_engine() const {
    if (tensor.data_ptr() == values.data_ptr()) {
      tensor.unsafeGetTensorImpl()->bump_version();
    } else {
      tensor.copy_(values);
    }
  }
};

/// An engine, the tensors bound to it, and memory for its passes. A module and its graphs share it.
template <class Engine, class Memory>
struct Shared {
  explicit Shared(std::shared_ptr<Engine> e) : engine(std::move(e)) {
    Weights& w = engine->weights();
    const WeightLayout& layout = w.layout();
    for (const auto& p : layout.parameters) {
      parameters.push_back(
          bind(p.name, w.parameters().data() + p.offset, p.shape, torch::kFloat32));
    }
    for (const auto& b : layout.buffers) {
      (b.integer ? integers : buffers)
          .push_back(b.integer
                         ? bind(b.name, w.integers().data() + b.offset, b.shape, torch::kInt64)
                         : bind(b.name, w.buffers().data() + b.offset, b.shape, torch::kFloat32));
    }
  }

  // Tensors keep the engine alive, and the engine alone: they are kept by this.
  Binding bind(const std::string& name, void* values, const std::vector<int64_t>& shape,
               at::ScalarType type) const {
    const auto view = [&] {
      return torch::from_blob(
          values, shape, [owner = engine](void*) {}, type);
    };
    return {name, view(), view()};
  }

  template <class F>
  void each(const F& f) const {
    for (const auto* list : {&parameters, &buffers, &integers}) {
      for (const Binding& binding : *list) f(binding);
    }
  }

  std::shared_ptr<Engine> engine;
  std::vector<Binding> parameters, buffers, integers;
  std::mutex mutex;  // of the engine and of what follows
  std::vector<std::unique_ptr<Memory>> idle;
};
using SharedLayer = Shared<SingleLayer, LayerWorkspace>;
using SharedNetwork = Shared<rotrnn::Network, Workspace>;

/// What passes of layers and of networks have in common. Their inputs begin with the sequences
/// themselves and the parameters.
template <class Engine, class Memory>
class EnginePass : public Pass {
 public:
  EnginePass(std::shared_ptr<Shared<Engine, Memory>> shared, const EngineOptions& options,
             const Offsets& offsets)
      : shared_(std::move(shared)), options_(options), offsets_(offsets) {
    if (options_.threads == 0) options_.threads = torch::get_num_threads();
    const std::lock_guard lock(shared_->mutex);
    auto& idle = shared_->idle;
    if (idle.empty()) idle.push_back(std::make_unique<Memory>());
    memory_ = std::move(idle.back());
    idle.pop_back();
  }
  ~EnginePass() override {
    const std::lock_guard lock(shared_->mutex);
    shared_->idle.push_back(std::move(memory_));
  }

 protected:
  /// Runs f, a forward pass, on the values that the tensors have.
  template <class F>
  void compute(const F& f) {
    const std::lock_guard lock(shared_->mutex);
    Engine& engine = *shared_->engine;
    shared_->each([](const Binding& b) { b.to_engine(); });
    const std::vector<int64_t> before = engine.weights().integers();
    engine.engine = options_;
    f(engine);
    if (engine.weights().integers() != before) {  // a layer has grown
      for (const Binding& b : shared_->integers) b.from_engine();
      for (const Binding& b : shared_->parameters) b.from_engine();
    }
  }

  /// Runs f, a backward pass, which fills an array of gradients. The result has these behind that
  /// of the sequences.
  template <class F>
  variable_list differentiate(const Tensor& sequences, const F& f) {
    const std::lock_guard lock(shared_->mutex);
    Engine& engine = *shared_->engine;
    const WeightLayout& layout = engine.layout();
    const auto all = std::make_shared<FlatArray>(layout);
    engine.engine = options_;
    f(engine, *all);
    variable_list out{sequences};
    for (const auto& p : layout.parameters) {
      out.push_back(torch::from_blob(
          all->of(p).data(), p.shape, [all](void*) {}, torch::kFloat32));
    }
    return out;
  }

  /// Where the initial states are in the inputs.
  size_t first_state() const { return 1 + shared_->parameters.size(); }

  /// Room for the states of a batch; undefined where there are none.
  States empty_states(const LayerOptions& layer, size_t size) const {
    const auto sequences = static_cast<int64_t>(offsets_.size()) - 1;
    const auto make = [&] { return torch::empty({sequences, static_cast<int64_t>(size)}); };
    const bool reverse = layer.bidirectional && (!layer_kind(layer.layer).channels ||
                                                 options_.kernels == Kernels::reference);
    return {make(), reverse ? make() : Tensor()};
  }

  std::shared_ptr<Shared<Engine, Memory>> shared_;
  EngineOptions options_;
  Offsets offsets_;
  std::unique_ptr<Memory> memory_;
};

template <class T>
BlockStates<T> pointers(const States& s) {
  const auto pointer = [](const Tensor& t) { return t.defined() ? t.data_ptr<float>() : nullptr; };
  return {pointer(s.forward), pointer(s.reverse)};
}

inline States empty_like(const States& s) {
  const auto like = [](const Tensor& t) { return t.defined() ? torch::empty_like(t) : t; };
  return {like(s.forward), like(s.reverse)};
}

inline void append(const States& s, variable_list& to) {
  if (s.forward.defined()) to.push_back(s.forward);
  if (s.reverse.defined()) to.push_back(s.reverse);
}

/// Which states are there: a pass must not keep its outputs, which keep their graph and so itself.
struct Has {
  bool forward = false, reverse = false;
};
inline Has has(const States& s) {
  return {s.forward.defined(), s.reverse.defined()};
}

inline Tensor contiguous(const Tensor& t) {
  return t.defined() ? t.contiguous() : t;
}

/// The way back: the next tensors of a list.
inline States take(const Has& has, const variable_list& list, size_t& next) {
  const auto one = [&](bool there) { return there ? contiguous(list[next++]) : Tensor(); };
  const Tensor forward = one(has.forward);
  return {forward, one(has.reverse)};
}

inline States checked_states(const States& s, const std::string& name, const Offsets& offsets,
                             size_t size) {
  const auto check = [&](const Tensor& t, const char* direction) {
    if (!t.defined()) return;
    const std::string what = name + direction;
    check_type(t, what, torch::kFloat32);
    const auto sequences = static_cast<int64_t>(offsets.size()) - 1;
    const std::vector<int64_t> wanted{sequences, static_cast<int64_t>(size)};
    check_shape(t, what, c10::str(at::IntArrayRef(wanted)), t.sizes() == wanted);
  };
  check(s.forward, ".forward");
  check(s.reverse, ".reverse");
  return {contiguous(s.forward), contiguous(s.reverse)};
}

/// u [rows, width] of a packed batch.
inline void check_rows(const Tensor& u, const std::string& name, int64_t width,
                       const Offsets& offsets) {
  check_type(u, name, torch::kFloat32);
  check_offsets(offsets);
  const int64_t rows = offsets.empty() ? 0 : offsets.back();
  check_shape(u, name, c10::str("[", rows, ", ", width, "], for these offsets and channels"),
              u.dim() == 2 && u.size(0) == rows && u.size(1) == width);
}

inline void check_has_states(const LayerOptions& layer, size_t size) {
  if (size > 0) return;
  fail(layer.layer, " runs as a convolution, which neither begins with a state nor shows one");
}

/// Where the tokens of a padded batch [sequences, time, ...] are, once the first two dimensions are
/// one.
struct Padding {
  Padding(const Tensor& padded, const std::string& name, const std::vector<int64_t>& lengths) {
    if (!padded.defined()) fail(name, " is not defined");
    check_shape(padded, name, "[sequences, time, ...]", padded.dim() >= 2);
    sequences = padded.size(0), time = padded.size(1);
    if (static_cast<int64_t>(lengths.size()) != sequences) {
      fail(lengths.size(), " lengths for ", sequences, " sequences in ", name);
    }
    std::vector<int64_t> places;
    for (const int64_t length : lengths) {
      if (length < 1 || length > time) {
        fail("a length of ", length, " in ", name, ", which has room for 1 to ", time);
      }
      places.resize(places.size() + static_cast<size_t>(length));
      const auto first = (static_cast<int64_t>(offsets.size()) - 1) * time;
      std::iota(places.end() - length, places.end(), first);
      offsets.push_back(offsets.back() + length);
    }
    rows = torch::tensor(places, torch::kInt64);
  }

  Tensor pack(const Tensor& padded) const { return padded.flatten(0, 1).index_select(0, rows); }
  /// Zeros behind the end of each sequence.
  Tensor pad(const Tensor& packed) const {
    const Tensor zeros = torch::zeros({sequences * time, packed.size(1)});
    return zeros.index_copy(0, rows, packed).view({sequences, time, packed.size(1)});
  }

  int64_t sequences, time;
  Offsets offsets{0};
  Tensor rows;
};

/// The type of the argument of clone(), which is another one in every LibTorch.
template <class Argument>
Argument clone_argument(std::shared_ptr<torch::nn::Module> (torch::nn::Module::*)(Argument) const);
using CloneDevice = decltype(clone_argument(&torch::nn::Module::clone));

/// What layers and networks have in common. `Derived` has reset(), which calls use(), and
/// made_again(), a module of the same settings. Cloneable's own clone() wants every child to be
/// Cloneable too.
template <class Derived, class Engine, class Memory>
class EngineModule : public torch::nn::Cloneable<Derived> {
 public:
  /// How the next pass computes; threads = 0: torch::get_num_threads().
  EngineOptions engine;

  /// Names, shapes and groups of the parameters.
  const WeightLayout& layout() const { return shared_->engine->layout(); }

  /// Numbers per sequence in the states of a layer; 0 for one that shows none.
  size_t state_size() const { return shared_->engine->state_size(); }

  /// The parameters as the program groups them, for torch::optim::AdamW: in the order of
  /// ParameterGroup, without the groups that are empty.
  std::vector<torch::optim::OptimizerParamGroup> adamw_groups(const LearningRates& rates) const {
    std::vector<torch::optim::OptimizerParamGroup> out;
    for (const WeightLayout::Range& range : layout().ranges) {
      const bool recurrent = range.group == ParameterGroup::recurrent ||
                             range.group == ParameterGroup::recurrent_decay;
      const bool decays =
          range.group == ParameterGroup::decay || range.group == ParameterGroup::recurrent_decay;
      auto options =
          std::make_unique<torch::optim::AdamWOptions>(recurrent ? rates.recurrent : rates.global);
      options->weight_decay(decays ? rates.weight_decay : 0)
          .betas({Optimiser::kBeta1, Optimiser::kBeta2})
          .eps(Optimiser::kEpsilon);
      std::vector<Tensor> parameters;
      for (size_t i = 0; i < shared_->parameters.size(); ++i) {
        if (layout().parameters[i].group != range.group) continue;
        parameters.push_back(shared_->parameters[i].tensor);
      }
      out.emplace_back(std::move(parameters), std::move(options));
    }
    return out;
  }

  std::shared_ptr<torch::nn::Module> clone(CloneDevice device = {}) const override {
    const torch::NoGradGuard no_grad;
    const std::shared_ptr<Derived> copy = static_cast<const Derived&>(*this).made_again();
    copy->engine = engine;
    copy->train(this->is_training());
    const auto copy_all = [](const std::vector<Binding>& from, const std::vector<Binding>& to) {
      for (size_t i = 0; i < from.size(); ++i) {
        Tensor t = to[i].tensor;
        if (from[i].tensor.options().type_equal(t.options())) {
          t.copy_(from[i].tensor);
        } else {
          t.set_data(from[i].tensor.clone());
        }
        t.set_requires_grad(from[i].tensor.requires_grad());
      }
    };
    copy_all(shared_->parameters, copy->shared_->parameters);
    copy_all(shared_->buffers, copy->shared_->buffers);
    copy_all(shared_->integers, copy->shared_->integers);
    if (device) copy->to(*device);
    return copy;
  }

 protected:
  /// Registers the tensors of an engine by their full names.
  void use(std::shared_ptr<Engine> made) {
    shared_ = std::make_shared<Shared<Engine, Memory>>(std::move(made));
    for (const Binding& b : shared_->parameters) {
      owner(b.name).register_parameter(b.name.substr(b.name.rfind('.') + 1), b.tensor);
    }
    for (const auto* list : {&shared_->buffers, &shared_->integers}) {
      for (const Binding& b : *list) {
        owner(b.name).register_buffer(b.name.substr(b.name.rfind('.') + 1), b.tensor);
      }
    }
  }

  /// The inputs of a pass.
  variable_list inputs(const Tensor& sequences) const {
    variable_list out{sequences};
    for (const Binding& b : shared_->parameters) out.push_back(b.tensor);
    return out;
  }

  std::shared_ptr<Shared<Engine, Memory>> shared_;

 private:
  // Of "blocks.0.norm.weight" the module blocks.0.norm, made when it is missing: names of tensors
  // have no dots in torch.
  torch::nn::Module& owner(const std::string& name) {
    torch::nn::Module* at = this;
    size_t begin = 0;
    for (size_t dot; (dot = name.find('.', begin)) != std::string::npos; begin = dot + 1) {
      const std::string part = name.substr(begin, dot - begin);
      const auto children = at->named_children();
      const auto* child = children.find(part);
      at = child != nullptr
               ? child->get()
               : at->register_module(part, std::make_shared<torch::nn::Module>(part)).get();
    }
    return *at;
  }
};

// ---------------------------------------------------------------- passes

class LayerPass final : public EnginePass<SingleLayer, LayerWorkspace> {
 public:
  /// `states`: whether those after the last tokens are wanted.
  LayerPass(std::shared_ptr<SharedLayer> shared, const EngineOptions& options,
            const Offsets& offsets, const Has& initial, bool states)
      : EnginePass(std::move(shared), options, offsets), has_initial_(initial), states_(states) {}

  variable_list forward(const variable_list& inputs) override {
    u_ = inputs[0].detach();
    size_t next = first_state();
    initial_ = take(has_initial_, inputs, next);
    variable_list out{torch::empty_like(u_)};
    compute([&](SingleLayer& layer) {
      const States final = states_ ? empty_states(layer.options(), layer.state_size()) : States();
      layer.forward({offsets_, u_.data_ptr<float>(), keep, pointers<const float>(initial_)},
                    {out[0].data_ptr<float>(), pointers<float>(final)}, *memory_);
      has_final_ = has(final);
      append(final, out);
    });
    return out;
  }

  variable_list backward(const variable_list& gradients) override {
    const Tensor dy = gradients[0].defined() ? gradients[0].contiguous() : torch::zeros_like(u_);
    size_t next = 1;
    const States dfinal = take(has_final_, gradients, next);
    const States dinitial = empty_like(initial_);
    const Tensor du = torch::empty_like(u_);
    variable_list out = differentiate(du, [&](SingleLayer& layer, FlatArray& parameters) {
      layer.backward({dy.data_ptr<float>(), pointers<const float>(dfinal)}, *memory_, parameters,
                     {du.data_ptr<float>(), pointers<float>(dinitial)});
    });
    append(dinitial, out);
    return out;
  }

  const Has& has_final() const { return has_final_; }

 private:
  Tensor u_;
  States initial_;
  Has has_initial_, has_final_;
  bool states_;
};

/// What of a pass of a network stays as the caller gave it.
struct NetworkSettings {
  Offsets offsets;
  Mode mode;
  uint64_t dropout_seed;
  int64_t dropout_step;
  std::vector<int64_t> sequences;
  std::vector<Has> initial;  // of the blocks
  bool states;               // whether those after the last tokens are wanted
};

class NetworkPass final : public EnginePass<rotrnn::Network, Workspace> {
 public:
  NetworkPass(std::shared_ptr<SharedNetwork> shared, const EngineOptions& options,
              NetworkSettings settings)
      : EnginePass(std::move(shared), options, settings.offsets), settings_(std::move(settings)) {}

  variable_list forward(const variable_list& inputs) override {
    x_ = inputs[0].detach();
    wants_values_ = inputs[0].requires_grad();
    size_t next = first_state();
    for (const Has& has : settings_.initial) initial_.push_back(take(has, inputs, next));
    variable_list out(1);
    compute([&](rotrnn::Network& network) {
      std::vector<States> final;
      for (int64_t l = 0; settings_.states && l < network.options().depth; ++l) {
        final.push_back(empty_states(network.options(), network.state_size()));
      }
      const std::span<const float> y = network.forward(input(final), *memory_);
      const int64_t outputs = network.shape().outputs;
      out[0] = torch::empty({static_cast<int64_t>(y.size()) / outputs, outputs});
      std::copy(y.begin(), y.end(), out[0].data_ptr<float>());
      for (const States& s : final) {
        has_final_.push_back(has(s));
        append(s, out);
      }
      if (settings_.mode != Mode::train) return;
      for (const Binding& b : shared_->buffers) b.from_engine();  // running statistics
    });
    return out;
  }

  variable_list backward(const variable_list& gradients) override {
    const Tensor dy = contiguous(gradients[0]);
    NetworkOutputGradient gradient;
    if (dy.defined()) gradient.y = dy.data_ptr<float>();
    std::vector<States> dfinal, dinitial;
    size_t next = 1;
    for (const Has& has : has_final_) {
      dfinal.push_back(take(has, gradients, next));
      gradient.final.push_back(pointers<const float>(dfinal.back()));
    }
    NetworkInputGradient to;
    const Tensor dx = wants_values_ ? torch::empty_like(x_) : Tensor();
    if (wants_values_) to.values = dx.data_ptr<float>();
    for (const States& s : initial_) {
      dinitial.push_back(empty_like(s));
      to.initial.push_back(pointers<float>(dinitial.back()));
    }
    variable_list out = differentiate(dx, [&](rotrnn::Network& network, FlatArray& parameters) {
      network.backward(gradient, *memory_, parameters, to);
    });
    for (const States& s : dinitial) append(s, out);
    return out;
  }

  /// Of the blocks.
  const std::vector<Has>& has_final() const { return has_final_; }

 private:
  NetworkInput input(const std::vector<States>& final) const {
    NetworkInput in;
    in.batch.offsets = offsets_;
    const auto count = static_cast<size_t>(x_.numel());
    if (x_.scalar_type() == torch::kInt64) {
      in.batch.tokens = {x_.data_ptr<int64_t>(), count};
    } else {
      in.batch.values = {x_.data_ptr<float>(), count};
    }
    in.mode = settings_.mode;
    in.backward = keep;
    in.dropout = {settings_.dropout_seed, settings_.dropout_step, settings_.sequences};
    for (const States& s : initial_) in.initial.push_back(pointers<const float>(s));
    for (const States& s : final) in.final.push_back(pointers<float>(s));
    return in;
  }

  Tensor x_;
  bool wants_values_ = false;
  std::vector<States> initial_;
  std::vector<Has> has_final_;
  NetworkSettings settings_;
};

}  // namespace detail

// ---------------------------------------------------------------- the modules

/// A recurrent layer by itself, without encoder, norm, activation and head.
class LayerImpl : public detail::EngineModule<LayerImpl, SingleLayer, LayerWorkspace> {
 public:
  /// With initial values drawn by the seed. SettingError for an invalid setting.
  explicit LayerImpl(const LayerOptions& options, uint64_t seed = 0)
      : options_(options), seed_(seed) {
    reset();
  }

  const LayerOptions& options() const { return options_; }

  /// y [rows, D] of u [rows, D], a packed batch.
  Tensor forward(const Tensor& u, const Offsets& offsets) { return run(u, offsets, {}, false).y; }

  /// The same from given states, with the states after the last tokens. std::invalid_argument for
  /// layers that have none.
  LayerResult forward_states(const Tensor& u, const Offsets& offsets, const States& initial = {}) {
    detail::check_has_states(options_, state_size());
    return run(u, offsets, initial, true);
  }

  /// y [sequences, time, D] of u [sequences, time, D]. What lies behind the end of a sequence is
  /// not looked at, and 0 in y.
  Tensor forward_padded(const Tensor& u, const std::vector<int64_t>& lengths) {
    const detail::Padding padding(u, "u", lengths);
    return padding.pad(forward(padding.pack(u), padding.offsets));
  }

  void reset() override { use(std::make_shared<SingleLayer>(options_, seed_)); }
  std::shared_ptr<LayerImpl> made_again() const {
    return std::make_shared<LayerImpl>(options_, seed_);
  }

  void pretty_print(std::ostream& out) const override {
    out << "rotrnn::nn::Layer(" << options_.layer << ", width " << options_.width << ", "
        << describe_layer(options_) << (options_.bidirectional ? ", bidirectional)" : ")");
  }

 private:
  LayerResult run(const Tensor& u, const Offsets& offsets, const States& initial, bool states) {
    detail::check_rows(u, "u", options_.width, offsets);
    const States given = detail::checked_states(initial, "initial", offsets, state_size());
    variable_list in = inputs(u.contiguous());
    detail::append(given, in);
    const auto pass = c10::make_intrusive<detail::LayerPass>(shared_, engine, offsets,
                                                             detail::has(given), states);
    const variable_list out = detail::run(pass, in);
    size_t next = 1;
    return {out[0], detail::take(pass->has_final(), out, next)};
  }

  LayerOptions options_;
  uint64_t seed_;
};
TORCH_MODULE(Layer);

/// Encoder → blocks → pooling → head. train() and eval() choose by which statistics batch norm
/// norms, and whether anything is dropped.
class NetworkImpl : public detail::EngineModule<NetworkImpl, rotrnn::Network, Workspace> {
 public:
  /// With initial values drawn by the seed. SettingError, std::invalid_argument for settings that
  /// make no network.
  NetworkImpl(const ModelOptions& options, const DataShape& shape, uint64_t seed = 0)
      : options_(options), shape_(shape), seed_(seed) {
    reset();
  }

  const ModelOptions& options() const { return options_; }
  const DataShape& shape() const { return shape_; }

  /// What dropout depends on besides the position in the network: the same values drop the same.
  struct Dropout {
    uint64_t seed = 0;
    int64_t step = 0;                // counts the passes in training by itself
    std::vector<int64_t> sequences;  // numbers of the sequences of a batch; empty: 0, 1, ...
  } dropout;

  /// The outputs [examples, outputs], or [rows, outputs] without pooling, of a packed batch: token
  /// numbers [rows] in int64, or values [rows, channels].
  Tensor forward(const Tensor& sequences, const Offsets& offsets) {
    return run(sequences, offsets, {}, false).y;
  }

  /// The same from given states, none or those of every block, with the states after the last
  /// tokens. std::invalid_argument for layers that have none.
  NetworkResult forward_states(const Tensor& sequences, const Offsets& offsets,
                               const std::vector<States>& initial = {}) {
    detail::check_has_states(options_, state_size());
    return run(sequences, offsets, initial, true);
  }

  /// The outputs of a padded batch, token numbers [sequences, time] or values [sequences, time,
  /// channels]: [examples, outputs], or without pooling [sequences, time, outputs].
  Tensor forward_padded(const Tensor& sequences, const std::vector<int64_t>& lengths) {
    const detail::Padding padding(sequences, "the input", lengths);
    const Tensor y = forward(padding.pack(sequences), padding.offsets);
    return options_.pooling == Pooling::none ? padding.pad(y) : y;
  }

  void reset() override {
    check_layers(options_);
    use(std::make_shared<rotrnn::Network>(options_, shape_, seed_));
  }
  std::shared_ptr<NetworkImpl> made_again() const {
    auto made = std::make_shared<NetworkImpl>(options_, shape_, seed_);
    made->dropout = dropout;
    return made;
  }

  void pretty_print(std::ostream& out) const override {
    out << "rotrnn::nn::Network(" << options_.depth << " x " << options_.layer << ", width "
        << options_.width << ", " << describe_layer(options_)
        << (options_.bidirectional ? ", bidirectional)" : ")");
  }

 private:
  NetworkResult run(const Tensor& x, const Offsets& offsets, const std::vector<States>& initial,
                    bool states) {
    check_input(x, offsets);
    detail::NetworkSettings s{offsets,           mode(), dropout.seed, dropout.step,
                              dropout.sequences, {},     states};
    if (s.sequences.empty() && !offsets.empty()) {
      s.sequences.resize(offsets.size() - 1);
      std::iota(s.sequences.begin(), s.sequences.end(), 0);
    }
    variable_list in = inputs(x.contiguous());
    for (const States& block : initial) {
      const std::string name = c10::str("initial[", s.initial.size(), "]");
      const States given = detail::checked_states(block, name, offsets, state_size());
      detail::append(given, in);
      s.initial.push_back(detail::has(given));
    }
    if (!is_training()) {  // backward looks at the running statistics
      for (const auto& b : shared_->buffers) in.push_back(b.tensor);
    }
    const auto pass = c10::make_intrusive<detail::NetworkPass>(shared_, engine, std::move(s));
    const variable_list out = detail::run(pass, in);
    if (is_training() && options_.dropout > 0) ++dropout.step;
    NetworkResult result{out[0], {}};
    size_t next = 1;
    for (const auto& has : pass->has_final()) {
      result.final.push_back(detail::take(has, out, next));
    }
    return result;
  }

  Mode mode() const { return is_training() ? Mode::train : Mode::evaluate; }

  void check_input(const Tensor& x, const Offsets& offsets) const {
    if (shape_.input == InputKind::channels) {
      return detail::check_rows(x, "the input", shape_.inputs, offsets);
    }
    detail::check_type(x, "the input", torch::kInt64);
    check_offsets(offsets);
    const int64_t rows = offsets.empty() ? 0 : offsets.back();
    detail::check_shape(x, "the input", c10::str("[", rows, "], for these offsets"),
                        x.dim() == 1 && x.size(0) == rows);
  }

  ModelOptions options_;
  DataShape shape_;
  uint64_t seed_;
};
TORCH_MODULE(Network);

}  // namespace rotrnn::nn
