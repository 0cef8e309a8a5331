#include "rotrnn/torch/modules.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <sstream>

#include "rotrnn/base/threads.h"
#include "tests/network/network_fixture.h"

namespace rotrnn {
namespace {

using nn::Offsets;
using nn::States;
using testing::cases_of;
using testing::Doubles;
using testing::expect_close;
using testing::float32_error;
using testing::NetworkCase;
using testing::open_fixture;
using testing::options_of;
using testing::Recorded;
using torch::Tensor;

// ---------------------------------------------------------------- tensors and numbers

Doubles doubles(const Tensor& t) {
  if (!t.defined()) return {};
  const Tensor d = t.detach().to(torch::kFloat64).contiguous();
  return {d.data_ptr<double>(), d.data_ptr<double>() + d.numel()};
}

Tensor tensor_of(const Doubles& values, const std::vector<int64_t>& shape) {
  return torch::tensor(values, torch::kFloat64).to(torch::kFloat32).view(shape);
}

// A leaf with these values; undefined without any.
Tensor leaf(const Doubles& values, const std::vector<int64_t>& shape) {
  return values.empty() ? Tensor() : tensor_of(values, shape).requires_grad_();
}

double relative_error(const Tensor& got, const Tensor& want) {
  return (got - want).norm().item<double>() / want.norm().item<double>();
}

// Σ weights⊙t by operations of torch.
Tensor weighted(const Tensor& t, const Doubles& weights) {
  return (t * tensor_of(weights, t.sizes().vec())).sum();
}

std::string message_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const std::exception& e) {
    return e.what();
  }
  return "(nothing was thrown)";
}

#define EXPECT_MESSAGE(statement, part)                                 \
  do {                                                                  \
    const std::string message = message_of([&] { (void)(statement); }); \
    EXPECT_NE(message.find(part), std::string::npos) << message;        \
  } while (false)

// Values by the names that modules give them.
template <class Module>
void load(Module& module, const Recorded& recorded) {
  const torch::NoGradGuard no_grad;
  for (const std::string at : {"", "grown_"}) {
    for (const auto& p : module->named_parameters()) {
      if (!recorded.has(at + "param/" + p.key())) continue;
      p.value().copy_(tensor_of(recorded[at + "param/" + p.key()], p.value().sizes().vec()));
    }
    for (const auto& b : module->named_buffers()) {
      const std::string name = at + "buffer/" + b.key();
      if (!recorded.has(name)) continue;
      if (b.value().scalar_type() == torch::kInt64) {
        b.value().fill_(recorded.integers(name)[0]);
      } else {
        b.value().copy_(tensor_of(recorded[name], b.value().sizes().vec()));
      }
    }
  }
}

// ---------------------------------------------------------------- what was recorded

// Channels have their states recorded as [D, N], the kernels [N, D].
Doubles turned(const nn::Layer& layer, const Doubles& states) {
  if (layer->options().layer != "s4d" || states.empty()) return states;
  const auto D = static_cast<size_t>(layer->options().width);
  const size_t each = layer->state_size() / 2, N = each / D;
  Doubles out(states.size());
  for (size_t i = 0; i < states.size(); ++i) {
    out[i / each * each + i % N * D + i % each / N] = states[i];
  }
  return out;
}

struct Tolerances {
  double output, gradient;
  bool float32;  // the error that ATen had in float32 is granted too
};

// The layer between other operations of torch, in one graph.
void expect_recorded(const SafeTensorFile& file, const std::string& name,
                     const LayerOptions& options, Kernels kernels, const Tolerances& tolerance) {
  SCOPED_TRACE(name);
  const Recorded recorded(file, name);
  nn::Layer layer(options);
  load(layer, recorded);
  layer->engine.kernels = kernels;
  const Offsets offsets = recorded.integers("offsets");
  const auto states = [&](const char* what) { return turned(layer, recorded[what]); };
  const std::vector<int64_t> state_shape{static_cast<int64_t>(offsets.size()) - 1,
                                         static_cast<int64_t>(layer->state_size())};
  Doubles half = recorded["u"];
  for (double& x : half) x /= 2;
  const Tensor u = leaf(half, recorded.shape("u"));
  const States initial{leaf(states("initial"), state_shape),
                       leaf(states("initial_reverse"), state_shape)};
  const bool one_way = has_channels(options) && kernels == Kernels::fused;
  if (one_way && initial.reverse.defined()) {
    EXPECT_MESSAGE(layer->forward_states(2 * u, offsets, initial), "reverse state");
    return;
  }
  nn::LayerResult out;
  if (recorded.has("final") || initial.forward.defined()) {
    out = layer->forward_states(2 * u, offsets, initial);
  } else {
    out.y = layer->forward(2 * u, offsets);
  }
  expect_close(doubles(out.y), recorded["y"], tolerance.output, "y");
  expect_close(doubles(out.final.forward), states("final"), tolerance.output, "final");
  EXPECT_EQ(out.final.reverse.defined(), recorded.has("final_reverse") && !one_way);
  if (out.final.reverse.defined()) {
    expect_close(doubles(out.final.reverse), states("final_reverse"), tolerance.output,
                 "final_reverse");
  } else if (recorded.has("dfinal_reverse")) {
    return;  // the recorded gradients are of a loss that these kernels do not have
  }
  Tensor loss = weighted(out.y, recorded["dy"]);
  if (recorded.has("dfinal")) loss = loss + weighted(out.final.forward, states("dfinal"));
  if (recorded.has("dfinal_reverse")) {
    loss = loss + weighted(out.final.reverse, states("dfinal_reverse"));
  }
  loss.backward();
  for (const auto& p : layer->named_parameters()) {
    const double error = float32_error(file, name, "grad/" + p.key());
    expect_close(doubles(p.value().grad()), recorded["grad/" + p.key()], tolerance.gradient,
                 "gradient of " + p.key(), tolerance.float32 ? 2 * error : 0);
  }
  expect_close(doubles(u.grad() / 2), recorded["grad_u"], tolerance.gradient, "grad_u");
  for (const auto& [state, what] : {std::pair{initial.forward, "grad_initial"},
                                    std::pair{initial.reverse, "grad_initial_reverse"}}) {
    if (!state.defined()) continue;
    expect_close(doubles(state.grad()), states(what), tolerance.gradient, what);
  }
}

class LayerModules : public ::testing::TestWithParam<const char*> {
 protected:
  void expect_all(Kernels kernels, const Tolerances& tolerance) {
    const SafeTensorFile file = open_fixture(std::string("layers_") + GetParam() + ".safetensors");
    size_t count = 0;
    const nlohmann::json cases = cases_of(file);
    for (const auto& [name, settings] : cases.items()) {
      expect_recorded(file, name, options_of(settings), kernels, tolerance);
      ++count;
    }
    EXPECT_GT(count, 10u);
  }
};

// The tolerances are those of tests/network/single_layer_test.cpp.
TEST_P(LayerModules, ComputeWhatWasRecorded) {
  expect_all(Kernels::fused, {2e-5, 3e-4, true});
}

// The twins are in double; the loss is rounded to float32 on its way.
TEST_P(LayerModules, ComputeWhatWasRecordedByTheTwins) {
  expect_all(Kernels::reference, {1e-7, 2e-7, false});
}

INSTANTIATE_TEST_SUITE_P(Layers, LayerModules,
                         ::testing::Values("rotrnn", "lru", "s5", "s4d", "s4", "liquid_s4"),
                         [](const auto& info) { return std::string(info.param); });

Tensor loss_of(const NetworkCase& c, const Tensor& y) {
  namespace F = torch::nn::functional;
  if (c.network.shape().target == TargetKind::values) {
    const auto& wanted = c.target_values;
    return F::mse_loss(y, torch::tensor(wanted).view(y.sizes()));
  }
  F::CrossEntropyFuncOptions options;
  if (!c.loss.class_weights.empty())
    options.weight(torch::tensor(c.loss.class_weights).to(torch::kFloat32));
  return F::cross_entropy(y, torch::tensor(c.classes), options);
}

void expect_recorded(NetworkCase& c) {
  nn::Network net(c.network.options(), c.network.shape());
  load(net, c.recorded);
  net->train(c.input.mode == Mode::train);
  net->dropout = {c.input.dropout.seed, c.input.dropout.step, c.sequences};
  const bool tokens = c.recorded.has("tokens");
  const Tensor x =
      tokens ? torch::tensor(c.tokens) : leaf(c.recorded["values"], c.recorded.shape("values"));
  const std::vector<int64_t> state_shape{static_cast<int64_t>(c.offsets.size()) - 1,
                                         static_cast<int64_t>(net->state_size())};
  std::vector<States> initial;
  for (size_t l = 0; l < c.depth() && c.recorded.has("initial/0"); ++l) {
    initial.push_back({leaf(c.states("initial", l), state_shape),
                       leaf(c.states("initial_reverse", l), state_shape)});
  }
  if (net->options().layer == "s4d" && c.recorded.has("initial_reverse/0")) {
    EXPECT_MESSAGE(net->forward_states(x, c.offsets, initial), "reverse state");
    return;
  }
  nn::NetworkResult out;
  if (c.recorded.has("final/0")) {
    out = net->forward_states(x, c.offsets, initial);
  } else {
    out.y = net->forward(x, c.offsets);
  }
  expect_close(doubles(out.y), c.recorded["y"], 2e-5, "y");
  const Tensor loss = loss_of(c, out.y);
  expect_close(doubles(loss), c.recorded["loss"], 2e-5, "loss");
  Tensor objective = loss;
  for (size_t l = 0; l < out.final.size(); ++l) {
    const auto& [forward, reverse] = out.final[l];
    expect_close(doubles(forward), c.states("final", l), 2e-5, "final");
    expect_close(doubles(reverse), c.states("final_reverse", l), 2e-5, "final_reverse");
    objective = objective + weighted(forward, c.states("dfinal", l));
    if (reverse.defined()) objective = objective + weighted(reverse, c.states("dfinal_reverse", l));
  }
  objective.backward();
  size_t parameters = 0;
  for (const auto& p : net->named_parameters()) {
    expect_close(doubles(p.value().grad()), c.recorded["grad/" + p.key()], 2e-4,
                 "gradient of " + p.key());
    ++parameters;
  }
  EXPECT_EQ(parameters, c.network.layout().parameters.size());
  if (!tokens) expect_close(doubles(x.grad()), c.recorded["grad_values"], 2e-4, "grad_values");
  for (size_t l = 0; l < initial.size(); ++l) {
    expect_close(doubles(initial[l].forward.grad()), c.states("grad_initial", l), 2e-4,
                 "grad_initial");
    if (!initial[l].reverse.defined()) continue;
    expect_close(doubles(initial[l].reverse.grad()), c.states("grad_initial_reverse", l), 2e-4,
                 "grad_initial_reverse");
  }
  for (const auto& b : net->named_buffers()) {
    if (b.key().find("running_") == std::string::npos) continue;
    expect_close(doubles(b.value()), c.recorded["running/" + b.key()], 2e-5, b.key());
  }
}

// The tolerances are those of tests/network/network_test.cpp; losses are torch's own.
TEST(NetworkModule, ComputesWhatWasRecorded) {
  const SafeTensorFile file = open_fixture("networks.safetensors");
  const nlohmann::json cases = cases_of(file);
  for (const auto& [name, settings] : cases.items()) {
    SCOPED_TRACE(name);
    NetworkCase c(file, name, settings);
    expect_recorded(c);
  }
}

// ---------------------------------------------------------------- modules of some settings

LayerOptions small_layer(const std::string& name = "rotrnn") {
  LayerOptions o;
  o.layer = name;
  o.width = 6, o.state = 8, o.rotrnn.heads = 2;
  o.s5.blocks = 1;
  return o;
}

ModelOptions small_model(const std::string& layer = "rotrnn") {
  ModelOptions o;
  static_cast<LayerOptions&>(o) = small_layer(layer);
  o.depth = 2;
  return o;
}

const DataShape kValues{InputKind::channels, 3, TargetKind::classes, 4};
const DataShape kTokens{InputKind::tokens, 9, TargetKind::classes, 4};

Tensor randn(std::vector<int64_t> shape, uint64_t seed = 1) {
  torch::manual_seed(seed);
  return torch::randn(shape);
}

// The modules under one interface: forward of a packed batch [rows, channels].
struct Subject {
  std::string name;
  std::shared_ptr<torch::nn::Module> module;
  std::function<Tensor(const Tensor&, const Offsets&)> forward;
  std::function<Tensor(const Tensor&, const std::vector<int64_t>&)> forward_padded;
  int64_t channels;
};

template <class Holder>
Subject subject(const std::string& name, Holder m, int64_t channels) {
  return {name, m.ptr(),
          [m](const Tensor& x, const Offsets& o) mutable { return m->forward(x, o); },
          [m](const Tensor& x, const std::vector<int64_t>& l) mutable {
            return m->forward_padded(x, l);
          },
          channels};
}

std::vector<Subject> subjects(uint64_t seed = 3) {
  std::vector<Subject> out;
  for (const char* name : {"rotrnn", "lru", "s5", "s4d", "s4", "liquid_s4"}) {
    out.push_back(subject(std::string("layer ") + name, nn::Layer(small_layer(name), seed), 6));
    out.push_back(subject(std::string("network of ") + name,
                          nn::Network(small_model(name), kValues, seed), 3));
  }
  // S4 and Liquid-S4 grow to the longest sequence, which a test of something else need not see.
  const torch::NoGradGuard no_grad;
  for (Subject& s : out) s.module->eval(), s.forward(randn({64, s.channels}), {0, 64});
  for (Subject& s : out) s.module->train();
  return out;
}

std::map<std::string, Tensor> gradients_of(const torch::nn::Module& module) {
  std::map<std::string, Tensor> out;
  for (const auto& p : module.named_parameters()) out[p.key()] = p.value().grad().clone();
  return out;
}

// Relative to the largest, as most are sums that cancel somewhere.
void expect_same_gradients(const std::map<std::string, Tensor>& got,
                           const std::map<std::string, Tensor>& want, double tolerance) {
  ASSERT_EQ(got.size(), want.size());
  for (const auto& [name, g] : want)
    expect_close(doubles(got.at(name)), doubles(g), tolerance, name);
}

TEST(Modules, RunOnThreadsOfTheStandardLibrary) {
  EXPECT_STREQ(kernels::thread_backend(), "std");
}

TEST(Modules, HaveTheNamesOfTheEngine) {
  const nn::Layer layer(small_layer("s4"));
  const nn::Network network(small_model("s4"), kTokens);
  const auto names = [](const torch::nn::Module& m) {
    std::set<std::string> out;
    for (const auto& p : m.named_parameters()) out.insert(p.key());
    for (const auto& b : m.named_buffers()) out.insert(b.key());
    return out;
  };
  const auto of_engine = [](const WeightLayout& layout) {
    std::set<std::string> out;
    for (const auto& p : layout.parameters) out.insert(p.name);
    for (const auto& b : layout.buffers) out.insert(b.name);
    return out;
  };
  EXPECT_EQ(names(*layer), of_engine(SingleLayer(small_layer("s4"), 0).layout()));
  EXPECT_EQ(names(*network), of_engine(rotrnn::Network(small_model("s4"), kTokens, 0).layout()));
  EXPECT_TRUE(names(*network).count("blocks.1.layer.length"));
}

TEST(Modules, AreDrawnAsTheEngineDraws) {
  const rotrnn::Network engine(small_model(), kTokens, 5);
  const nn::Network module(small_model(), kTokens, 5);
  for (const auto& p : module->named_parameters()) {
    const auto want = engine.weights().find(p.key());
    EXPECT_EQ(doubles(p.value()), Doubles(want.begin(), want.end())) << p.key();
  }
}

// ---------------------------------------------------------------- graphs

TEST(Graphs, ThatLiveTogetherDoNotShareMemory) {
  for (Subject& s : subjects()) {
    SCOPED_TRACE(s.name);
    const Tensor a = randn({20, s.channels}), b = randn({30, s.channels}, 2);
    const auto of_a = [&] { return s.forward(a, {0, 20}).sum(); };
    const auto of_b = [&] { return s.forward(b, {0, 10, 30}).square().sum(); };
    const auto gradients = [&](const Tensor& loss) {
      s.module->zero_grad();
      loss.backward();
      return gradients_of(*s.module);
    };
    const auto together = gradients(of_a() + of_b());
    auto apart = gradients(of_a());
    const auto second = gradients(of_b());
    for (auto& [name, g] : apart) g = g + second.at(name);
    expect_same_gradients(together, apart, 1e-5);
    // The first graph of two runs backward first, and after the second is gone.
    const Tensor kept = of_a();
    of_b();
    of_b().backward();
    expect_same_gradients(gradients(kept), gradients(of_a()), 0);
  }
}

TEST(Graphs, AddToGradientsAndOverwriteNone) {
  for (Subject& s : subjects()) {
    SCOPED_TRACE(s.name);
    const Tensor a = randn({20, s.channels}), b = randn({30, s.channels}, 2);
    s.forward(a, {0, 20}).sum().backward();
    auto sum = gradients_of(*s.module);
    s.forward(b, {0, 10, 30}).sum().backward();
    const auto both = gradients_of(*s.module);
    s.module->zero_grad();
    s.forward(b, {0, 10, 30}).sum().backward();
    for (auto& [name, g] : sum) g = g + gradients_of(*s.module).at(name);
    expect_same_gradients(both, sum, 1e-5);
  }
}

TEST(Graphs, OfTheSameLayerTwiceAddUp) {
  nn::Layer layer(small_layer());
  const Offsets offsets{0, 7, 12};
  const Tensor u = randn({12, 6}).requires_grad_();
  const Tensor dy = randn({12, 6}, 2);
  (layer->forward(layer->forward(u, offsets).tanh(), offsets) * dy).sum().backward();
  // By differences of the whole, in double where the twins compute.
  layer->engine.kernels = Kernels::reference;
  const torch::NoGradGuard no_grad;
  const Tensor theta = layer->named_parameters()["theta"];
  const Tensor gradient = theta.grad().clone();
  const auto loss = [&] {
    const Tensor y = layer->forward(layer->forward(u, offsets).tanh(), offsets);
    return (y * dy).to(torch::kFloat64).sum().item<double>();
  };
  const float step = 1e-2f;
  for (int64_t i = 0; i < theta.numel(); ++i) {
    float& x = theta.view(-1).data_ptr<float>()[i];
    const float before = x;
    x = before + step;
    const double more = loss();
    x = before - step;
    const double less = loss();
    x = before;
    EXPECT_NEAR(gradient.view(-1)[i].item<double>(), (more - less) / (2 * step), 2e-3);
  }
}

TEST(Graphs, RunBackwardOnce) {
  for (Subject& s : subjects()) {
    SCOPED_TRACE(s.name);
    const Tensor x = randn({20, s.channels});
    const Tensor loss = s.forward(x, {0, 20}).sum();
    loss.backward({}, /*retain_graph=*/true);
    EXPECT_MESSAGE(loss.backward(), "backward for the second time");
    const Tensor other = s.forward(x, {0, 20}).sum();
    other.backward();
    EXPECT_MESSAGE(other.backward(), "second time");  // torch's own
    const Tensor third = s.forward(x, {0, 20}).sum();
    EXPECT_MESSAGE(third.backward({}, true, /*create_graph=*/true), "gradients of gradients");
  }
}

TEST(Graphs, OutliveTheirModule) {
  Tensor theta, y, first;
  {
    nn::Network net(small_model(), kValues, 1);
    theta = net->named_parameters()["blocks.0.layer.theta"];
    y = net->forward(randn({20, 3}), {0, 20});
    first = net->forward(randn({20, 3}), {0, 20});
    first.sum().backward();
    first = theta.grad().clone();
    theta.mutable_grad().zero_();
  }
  y.sum().backward();
  EXPECT_TRUE(theta.grad().equal(first));
  EXPECT_GT(first.abs().sum().item<double>(), 0);
}

TEST(Modules, AreOutlivedByTheirParameters) {
  std::vector<Tensor> parameters, before;
  {
    const nn::Layer layer(small_layer());
    parameters = layer->parameters();
    for (const Tensor& p : parameters) before.push_back(p.clone());
  }
  const nn::Layer other(small_layer(), 1);  // takes memory that has become free
  for (size_t i = 0; i < before.size(); ++i) EXPECT_TRUE(parameters[i].equal(before[i]));
}

// One that kept its outputs would keep its memory for ever.
TEST(Graphs, FreeTheirMemory) {
  nn::Layer layer(small_layer());
  std::weak_ptr<torch::autograd::Node> node;
  {
    const Tensor u = randn({20, 6});
    const auto out = layer->forward_states(u, {0, 20});
    node = out.y.grad_fn();
  }
  EXPECT_TRUE(node.expired());
}

TEST(Graphs, RefuseParametersThatHaveChanged) {
  for (Subject& s : subjects()) {
    SCOPED_TRACE(s.name);
    const Tensor loss = s.forward(randn({20, s.channels}), {0, 20}).sum();
    const torch::NoGradGuard no_grad;
    s.module->parameters()[0].add_(0.1);
    const torch::AutoGradMode grad(true);
    EXPECT_MESSAGE(loss.backward(), "modified by an inplace operation");
  }
}

TEST(Graphs, RefuseLayersThatHaveGrown) {
  for (const char* name : {"s4", "liquid_s4"}) {
    for (const bool loaded : {false, true}) {  // with values that are copied into the engine
      nn::Layer layer(small_layer(name));
      if (loaded) {
        std::stringstream file;
        torch::save(layer, file);
        torch::load(layer, file);
      }
      const Tensor C = layer->named_parameters()["C_re"], length = layer->named_buffers()["length"];
      const Tensor loss = layer->forward(randn({10, 6}), {0, 10}).sum();
      const Tensor before = C.clone();
      const int64_t grown = length.item<int64_t>();
      layer->forward(randn({200, 6}), {0, 200}).sum().backward();  // has grown before it was kept
      EXPECT_GT(length.item<int64_t>(), grown);
      EXPECT_FALSE(C.equal(before));
      EXPECT_MESSAGE(loss.backward(), "modified by an inplace operation");
    }
  }
}

TEST(Graphs, InEvaluationRefuseStatisticsThatHaveMoved) {
  nn::Network net(small_model(), kValues);
  const Tensor x = randn({20, 3});
  net->eval();
  const Tensor loss = net->forward(x, {0, 20}).sum();
  net->train();
  const Tensor first = net->forward(x, {0, 20}).sum();
  net->forward(x, {0, 20}).sum();
  EXPECT_NO_THROW(first.backward());  // it used those of its batch
  EXPECT_MESSAGE(loss.backward(), "modified by an inplace operation");
}

TEST(Graphs, AreNotMadeWithoutNeed) {
  for (Subject& s : subjects()) {
    SCOPED_TRACE(s.name);
    const Tensor x = randn({20, s.channels}).requires_grad_();
    s.module->eval();
    const Tensor y = s.forward(x, {0, 20});
    {
      const torch::NoGradGuard no_grad;
      const Tensor same = s.forward(x, {0, 20});
      EXPECT_FALSE(same.requires_grad());
      EXPECT_TRUE(same.equal(y));
    }
    y.sum().backward();
    const Tensor dx = x.grad().clone();
    for (const Tensor& p : s.module->parameters()) p.set_requires_grad(false);
    s.module->zero_grad();
    EXPECT_FALSE(s.forward(x.detach(), {0, 20}).requires_grad());
    x.mutable_grad() = Tensor();
    s.forward(x, {0, 20}).sum().backward();  // frozen: gradients of the input alone
    EXPECT_TRUE(x.grad().equal(dx));
    for (const Tensor& p : s.module->parameters()) {
      EXPECT_TRUE(!p.grad().defined() || p.grad().abs().sum().item<double>() == 0);
    }
  }
}

// States that are shown and then play no part in the loss change no gradient. With sequences of
// equal lengths S4D is a convolution, unless it shows states.
TEST(Graphs, NeedNoGradientOfTheFinalStates) {
  for (const char* name : {"rotrnn", "lru", "s5", "s4d"}) {
    SCOPED_TRACE(name);
    LayerOptions o = small_layer(name);
    o.state = 14;
    nn::Layer layer(o);
    ModelOptions m = small_model(name);
    m.state = 14;
    nn::Network net(m, kValues);
    Offsets offsets{0};
    for (int i = 0; i < 8; ++i) offsets.push_back(offsets.back() + 40);
    const Tensor u = randn({320, 6}), x = randn({320, 3}), dy = randn({320, 6}, 2);
    const auto gradients = [](auto& module, const Tensor& loss) {
      module->zero_grad();
      loss.backward();
      return gradients_of(*module);
    };
    const auto plain = gradients(layer, (layer->forward(u, offsets) * dy).sum());
    const auto shown = gradients(layer, (layer->forward_states(u, offsets).y * dy).sum());
    expect_same_gradients(shown, plain, 1e-4);
    const auto net_plain = gradients(net, net->forward(x, offsets).square().sum());
    const auto net_shown = gradients(net, net->forward_states(x, offsets).y.square().sum());
    expect_same_gradients(net_shown, net_plain, 1e-4);
    // And the other way round.
    layer->zero_grad();
    layer->forward_states(u, offsets).final.forward.square().sum().backward();
    EXPECT_EQ(layer->named_parameters()["D"].grad().abs().sum().item<double>(), 0);
  }
}

TEST(Graphs, TakeAnySequenceApartAndTogether) {
  nn::Layer layer(small_layer());
  const Tensor u = randn({30, 6});
  const auto whole = layer->forward_states(u, {0, 30});
  const auto first = layer->forward_states(u.narrow(0, 0, 11), {0, 11});
  const auto rest = layer->forward_states(u.narrow(0, 11, 19), {0, 19}, first.final);
  EXPECT_LE(relative_error(torch::cat({first.y, rest.y}), whole.y), 1e-6);
  const auto gradients = [&](const Tensor& loss) {
    layer->zero_grad();
    loss.backward();
    return gradients_of(*layer);
  };
  // Through the state that goes from the first pass to the second.
  expect_same_gradients(gradients(torch::cat({first.y, rest.y}).square().sum()),
                        gradients(whole.y.square().sum()), 1e-5);
}

// ---------------------------------------------------------------- optimisers

TEST(AdamW, StepsAsTheOptimiserOfTheEngine) {
  nn::Network net(small_model("s4d"), kTokens, 2);
  rotrnn::Network engine(small_model("s4d"), kTokens, 2);
  const LearningRates rates{3e-3, 1e-3, 0.1};
  torch::optim::AdamW theirs(net->adamw_groups(rates), torch::optim::AdamWOptions(1));
  Optimiser ours(engine.layout());
  FlatArray gradients(engine.layout());
  std::mt19937 random(4);
  std::normal_distribution<float> normal;
  for (int64_t step = 1; step <= 20; ++step) {
    for (float& g : gradients.all()) g = normal(random);
    ours.step(step, rates, gradients, engine.weights(), 1);
    for (const auto& p : engine.layout().parameters) {
      const auto g = gradients.of(p);
      Tensor parameter = net->named_parameters()[p.name];
      parameter.mutable_grad() = tensor_of({g.begin(), g.end()}, p.shape);
    }
    theirs.step();
  }
  size_t groups = 0;
  for (const auto& range : engine.layout().ranges) groups += range.count > 0;
  EXPECT_EQ(theirs.param_groups().size(), groups);
  EXPECT_GE(groups, 3u);
  for (const auto& p : engine.layout().parameters) {
    const auto want = engine.weights().parameters().of(p);
    // The engine's kernel has 1 - β₂ from β₂ in float32, which is 4.7e-5 more than 0.001, and so
    // steps that are 2.3e-5 less; twenty of at most the rate.
    expect_close(doubles(net->named_parameters()[p.name]), Doubles(want.begin(), want.end()), 1e-6,
                 p.name, 20 * 2.4e-5 * rates.global);
  }
}

TEST(AdamW, TrainsWithModulesOfTorchAround) {
  nn::Layer layer(small_layer());
  torch::nn::Linear head(6, 2);
  std::vector<Tensor> parameters = layer->parameters();
  for (const Tensor& p : head->parameters()) parameters.push_back(p);
  torch::optim::Adam adam(parameters, torch::optim::AdamOptions(1e-2));
  const Tensor u = randn({40, 6}), target = randn({40, 2}, 2);
  double first = 0, last = 0;
  for (int step = 0; step < 100; ++step) {
    adam.zero_grad();
    const Tensor loss =
        (head->forward(layer->forward(u, {0, 15, 40}).relu()) - target).square().mean();
    loss.backward();
    adam.step();
    last = loss.item<double>();
    if (step == 0) first = last;
  }
  EXPECT_LT(last, first / 2);
}

// ---------------------------------------------------------------- training and evaluation

TEST(NetworkModule, DropsByItsKeyInTrainingOnly) {
  ModelOptions o = small_model();
  o.dropout = 0.5;
  o.norm = Norm::layer;
  nn::Network net(o, kValues);
  const Tensor x = randn({20, 3});
  const Offsets offsets{0, 8, 20};
  net->dropout.seed = 7;
  const Tensor first = net->forward(x, offsets), second = net->forward(x, offsets);
  EXPECT_EQ(net->dropout.step, 2);
  EXPECT_FALSE(first.equal(second));
  net->dropout.step = 0;
  EXPECT_TRUE(net->forward(x, offsets).equal(first));
  net->dropout = {7, 0, {0, 1}};
  EXPECT_TRUE(net->forward(x, offsets).equal(first));
  net->dropout = {7, 0, {5, 6}};
  EXPECT_FALSE(net->forward(x, offsets).equal(first));
  net->dropout = {7, 0, {5}};
  EXPECT_MESSAGE(net->forward(x, offsets), "1 sequence numbers for a batch of 2");
  net->dropout = {7, 0, {}};
  net->eval();
  EXPECT_TRUE(net->forward(x, offsets).equal(net->forward(x, offsets)));
  EXPECT_EQ(net->dropout.step, 0);
}

TEST(NetworkModule, StatisticsMoveInTrainingOnly) {
  nn::Network net(small_model(), kValues);
  const Tensor mean = net->named_buffers()["blocks.0.norm.running_mean"], before = mean.clone();
  net->eval();
  net->forward(randn({20, 3}), {0, 20});
  EXPECT_TRUE(mean.equal(before));
  net->train();
  net->forward(randn({20, 3}), {0, 20});
  EXPECT_FALSE(mean.equal(before));
}

// ---------------------------------------------------------------- files, copies, types

// Another module with the same tensors computes the same and learns by itself afterwards.
void expect_same_and_apart(Subject& s, Subject& other) {
  SCOPED_TRACE(s.name);
  const Tensor x = randn({20, s.channels});
  const Offsets offsets{0, 5, 20};
  const auto pass = [&](Subject& of) {
    of.module->zero_grad();
    const Tensor y = of.forward(x, offsets);
    y.square().sum().backward();
    return y;
  };
  const Tensor y = pass(s);
  EXPECT_TRUE(pass(other).equal(y));
  expect_same_gradients(gradients_of(*other.module), gradients_of(*s.module), 0);
  for (const auto& b : s.module->named_buffers()) {  // those that training has moved too
    EXPECT_TRUE(other.module->named_buffers()[b.key()].equal(b.value())) << b.key();
  }
  torch::optim::SGD(other.module->parameters(), torch::optim::SGDOptions(0.1)).step();
  EXPECT_FALSE(pass(other).equal(y));
  EXPECT_TRUE(pass(s).equal(y));
}

TEST(Modules, AreSavedAndLoaded) {
  auto saved = subjects(3), loaded = subjects(4);
  for (size_t i = 0; i < saved.size(); ++i) {
    saved[i].forward(randn({50, saved[i].channels}), {0, 50});  // statistics that are not new
    std::stringstream file;
    torch::save(saved[i].module, file);
    bool differ = false;  // not all are drawn
    for (const auto& p : saved[i].module->named_parameters()) {
      differ = differ || !loaded[i].module->named_parameters()[p.key()].equal(p.value());
    }
    EXPECT_TRUE(differ) << saved[i].name;
    torch::load(loaded[i].module, file);
    expect_same_and_apart(saved[i], loaded[i]);
  }
}

struct ParentImpl : torch::nn::Cloneable<ParentImpl> {
  ParentImpl() { reset(); }
  void reset() override {
    layer = register_module("layer", nn::Layer(small_layer()));
    network = register_module("network", nn::Network(small_model(), kValues));
  }
  nn::Layer layer{nullptr};
  nn::Network network{nullptr};
};

TEST(Modules, AreCloned) {
  ParentImpl parent;
  {
    const torch::NoGradGuard no_grad;
    for (const Tensor& p : parent.parameters()) p.mul_(0.9);
    parent.network->forward(randn({50, 3}), {0, 50});
  }
  parent.layer->engine.memory = MemoryMode::low;
  parent.network->dropout.seed = 5;
  const auto other = std::dynamic_pointer_cast<ParentImpl>(parent.clone());
  EXPECT_EQ(other->layer->engine.memory, MemoryMode::low);
  EXPECT_EQ(other->network->dropout.seed, 5u);
  Subject a = subject("layer", parent.layer, 6), b = subject("layer", other->layer, 6);
  expect_same_and_apart(a, b);
  a = subject("network", parent.network, 3), b = subject("network", other->network, 3);
  expect_same_and_apart(a, b);
  parent.network->eval();
  EXPECT_FALSE(std::dynamic_pointer_cast<nn::NetworkImpl>(parent.network->clone())->is_training());
}

TEST(Modules, ComputeInFloat32OnTheCpu) {
  auto all = subjects(3), same = subjects(3);
  for (size_t i = 0; i < all.size(); ++i) {
    Subject& s = all[i];
    SCOPED_TRACE(s.name);
    const Tensor x = randn({20, s.channels});
    EXPECT_MESSAGE(s.forward(x.to(torch::kFloat64), {0, 20}), "is Double on cpu; it must be Float");
    EXPECT_MESSAGE(s.forward(x.to(torch::kMeta), {0, 20}), "is Float on meta");
    EXPECT_MESSAGE(s.forward(Tensor(), {0, 20}), "is not defined");
    s.module->to(torch::kFloat64);
    EXPECT_MESSAGE(s.forward(x, {0, 20}), "is Double on cpu; it must be Float");
    s.module->to(torch::kFloat32);
    expect_same_and_apart(same[i], s);
  }
}

TEST(Modules, CheckShapes) {
  for (Subject& s : subjects()) {
    SCOPED_TRACE(s.name);
    const int64_t c = s.channels;
    EXPECT_MESSAGE(s.forward(randn({20, c + 1}), {0, 20}), "has the shape [20,");
    EXPECT_MESSAGE(s.forward(randn({19, c}), {0, 20}), "has the shape [19,");
    EXPECT_MESSAGE(s.forward(randn({20}), {0, 20}), "has the shape [20]");
    EXPECT_MESSAGE(s.forward(randn({20, c}), {1, 20}), "packed batch: ");
    EXPECT_MESSAGE(s.forward(randn({20, c}), {0, 20, 20}), "packed batch: ");
    EXPECT_MESSAGE(s.forward(randn({20, c}), {}), "packed batch: ");
    EXPECT_MESSAGE(s.forward_padded(randn({2, 5, c}), {5}), "1 lengths for 2 sequences");
    EXPECT_MESSAGE(s.forward_padded(randn({2, 5, c}), {5, 6}), "a length of 6");
    EXPECT_MESSAGE(s.forward_padded(randn({2, 5, c}), {0, 5}), "a length of 0");
    EXPECT_MESSAGE(s.forward_padded(randn({20}), {5}), "has the shape [20]");
  }
  nn::Network tokens(small_model(), kTokens);
  EXPECT_MESSAGE(tokens->forward(torch::zeros({20}), {0, 20}), "it must be Long");
  EXPECT_MESSAGE(tokens->forward(torch::full({20}, 9, torch::kInt64), {0, 20}), "vocabulary of 9");
  nn::Layer layer(small_layer());
  EXPECT_MESSAGE(layer->forward_states(randn({20, 6}), {0, 20}, {randn({2, 8}), {}}),
                 "initial.forward has the shape [2, 8]; it must be [1, 8]");
  EXPECT_MESSAGE(layer->forward_states(randn({20, 6}), {0, 20}, {{}, randn({1, 8})}),
                 "has no reverse state");
  nn::Layer s4(small_layer("s4"));
  EXPECT_MESSAGE(s4->forward_states(randn({20, 6}), {0, 20}), "s4 runs as a convolution");
  nn::Network net(small_model(), kValues);
  EXPECT_MESSAGE(net->forward_states(randn({20, 3}), {0, 20}, {States{}}), "states of 1 blocks");
  LayerOptions wrong = small_layer();
  wrong.rotrnn.heads = 3;
  EXPECT_THROW(nn::Layer{wrong}, SettingError);
}

TEST(Modules, TakeInputsThatAreNotContiguous) {
  for (Subject& s : subjects()) {
    SCOPED_TRACE(s.name);
    s.module->eval();
    const Tensor x = randn({s.channels, 20});
    EXPECT_TRUE(s.forward(x.t(), {0, 20}).equal(s.forward(x.t().contiguous(), {0, 20})));
  }
}

// ---------------------------------------------------------------- padded batches

Tensor padded(const Tensor& packed, const Offsets& offsets, int64_t time) {
  Tensor out = torch::full({static_cast<int64_t>(offsets.size()) - 1, time, packed.size(1)},
                           std::numeric_limits<float>::quiet_NaN());
  for (size_t i = 0; i + 1 < offsets.size(); ++i) {
    const int64_t length = offsets[i + 1] - offsets[i];
    out[static_cast<int64_t>(i)].narrow(0, 0, length) = packed.narrow(0, offsets[i], length);
  }
  return out;
}

TEST(PaddedBatches, ComputeWhatPackedOnesDo) {
  const Offsets offsets{0, 7, 8, 20};
  const std::vector<int64_t> lengths{7, 1, 12};
  for (Subject& s : subjects()) {
    SCOPED_TRACE(s.name);
    const Tensor x = randn({20, s.channels}).requires_grad_();
    const Tensor y = s.forward(x, offsets);
    y.square().sum().backward();
    const auto want = gradients_of(*s.module);
    s.module->zero_grad();
    const Tensor full = padded(x.detach(), offsets, 13).requires_grad_();
    const Tensor got = s.forward_padded(full, lengths);
    got.square().sum().backward();
    expect_same_gradients(gradients_of(*s.module), want, 0);
    const auto same = [&](const Tensor& three, const Tensor& two) {
      for (size_t i = 0; i < lengths.size(); ++i) {
        const Tensor sequence = three[static_cast<int64_t>(i)];
        EXPECT_TRUE(sequence.narrow(0, 0, lengths[i]).equal(two.narrow(0, offsets[i], lengths[i])));
        EXPECT_EQ(sequence.narrow(0, lengths[i], 13 - lengths[i]).abs().sum().item<double>(), 0);
      }
    };
    same(full.grad(), x.grad());
    if (got.dim() == 3) {
      EXPECT_EQ(got.sizes(), (std::vector<int64_t>{3, 13, 6}));
      same(got, y);
    } else {
      EXPECT_TRUE(got.equal(y));
    }
  }
}

TEST(PaddedBatches, OfTokensAndPerToken) {
  ModelOptions o = small_model();
  o.pooling = Pooling::none;
  DataShape shape = kTokens;
  shape.per_token = true;
  nn::Network net(o, shape);
  net->eval();
  const Tensor tokens = torch::arange(10) % 9;
  const Tensor both = torch::zeros({2, 6}, torch::kInt64);
  both[0].narrow(0, 0, 6).copy_(tokens.narrow(0, 0, 6));
  both[1].narrow(0, 0, 4).copy_(tokens.narrow(0, 6, 4));
  const Tensor y = net->forward(tokens, {0, 6, 10}), z = net->forward_padded(both, {6, 4});
  EXPECT_EQ(z.sizes(), (std::vector<int64_t>{2, 6, 4}));
  EXPECT_TRUE(z[0].equal(y.narrow(0, 0, 6)));
  EXPECT_TRUE(z[1].narrow(0, 0, 4).equal(y.narrow(0, 6, 4)));
}

TEST(Modules, StandInSequential) {
  nn::Layer layer(small_layer());
  torch::nn::Sequential both(layer, torch::nn::Linear(6, 2));
  const Tensor u = randn({20, 6});
  const Tensor y = both->forward(u, Offsets{0, 8, 20});
  EXPECT_TRUE(y.equal(both->ptr<torch::nn::LinearImpl>(1)->forward(layer->forward(u, {0, 8, 20}))));
  EXPECT_EQ(both->parameters().size(), layer->parameters().size() + 2);
}

TEST(Modules, PrintTheirSettings) {
  std::ostringstream out;
  out << nn::Layer(small_layer());
  EXPECT_EQ(out.str(), "rotrnn::nn::Layer(rotrnn, width 6, state 8, 2 heads)");
}

}  // namespace
}  // namespace rotrnn
