// The parameter maps and their adjoints with the scalar twins behind them, in double, against what
// the ATen path of version 0.1 computed.
#include "rotrnn/kernels/channel_reference.h"
#include "rotrnn/kernels/reference.h"
#include "rotrnn/layers/lru/lru.h"
#include "rotrnn/layers/rotrnn/rotrnn.h"
#include "rotrnn/layers/s4d/s4d.h"
#include "rotrnn/layers/s5/s5.h"
#include "tests/layers/recorded.h"

namespace rotrnn {
namespace {

namespace reference = kernels::reference;
using testing::Doubles;
using testing::Recorded;

constexpr double kOutput = 1e-10, kGradient = 1e-8;

struct Functions {
  TensorSpecs (*tensors)(const LayerOptions&);
  void (*draw)(const LayerOptions&, uint64_t, uint64_t, const LayerValues&);
  void (*map)(const MapRequest&, std::span<Description<double>>, MapTrace&);
  void (*map_backward)(const MapRequest&, const MapTrace&, std::span<const Description<double>>,
                       std::span<const Views<double>>);
};

const std::map<std::string, Functions>& functions() {
  static const std::map<std::string, Functions> table{
      {"rotrnn", {rotrnn_tensors, draw_rotrnn, map_rotrnn, map_rotrnn_backward}},
      {"lru", {lru_tensors, draw_lru, map_lru, map_lru_backward}},
      {"s5", {s5_tensors, draw_s5, map_s5, map_s5_backward}},
      {"s4d", {s4d_tensors, draw_s4d, map_s4d, map_s4d_backward}}};
  return table;
}

// What a pass gives, and the gradient of the description and of what went in.
struct Outcome {
  Doubles y, final, final_reverse, grad_u, grad_initial, grad_initial_reverse;
  Description<double> gradient;
};

Outcome run(const Diagonal<double>& s, const kernels::Sequences& sequences, const Recorded& r) {
  kernels::BlockConfig c;
  c.D = static_cast<size_t>(s.width);
  c.S = static_cast<size_t>(s.states);
  c.activation = kernels::Activation::none;
  c.norm = kernels::Norm::none;
  c.residual = false;
  c.bidirectional = s.bidirectional();
  reference::BlockValues<double> v;
  v.x = r["u"];
  v.lambda_re = s.lambda_re, v.lambda_im = s.lambda_im;
  v.W = s.W, v.V = s.V, v.V_reverse = s.V_reverse, v.D = s.D;
  v.kappa_re = s.start_re, v.kappa_im = s.start_im;
  v.initial = r["initial"], v.initial_reverse = r["initial_reverse"];
  const auto trace = reference::block_forward(c, sequences, v, {}, {});
  const auto g = reference::block_backward(c, sequences, v, {}, {}, trace, r["dy"], r["dfinal"],
                                           r["dfinal_reverse"]);
  Diagonal<double> d = s;
  d.lambda_re = g.lambda_re, d.lambda_im = g.lambda_im;
  d.W = g.W, d.V = g.V, d.V_reverse = g.V_reverse, d.D = g.D;
  d.start_re = g.kappa_re, d.start_im = g.kappa_im;
  return {trace.out, trace.final_state[0], trace.final_state[1], g.x,
          g.initial, g.initial_reverse,    std::move(d)};
}

// States of a channel layer, [sequences, 2, outer, inner] to [sequences, 2, inner, outer].
Doubles swapped(const Doubles& states, size_t outer, size_t inner) {
  Doubles out(states.size());
  const size_t plane = outer * inner;
  for (size_t i = 0; i < states.size(); ++i) {
    const size_t at = i % plane;
    out[i - at + at % inner * outer + at / inner] = states[i];
  }
  return out;
}

Outcome run(const Channel<double>& s, const kernels::Sequences& sequences, const Recorded& r) {
  const auto D = static_cast<size_t>(s.width), N = static_cast<size_t>(s.states);
  reference::ChannelValues<double> v;
  v.u = r["u"];
  v.lambda_re = s.lambda_re, v.lambda_im = s.lambda_im;
  v.c_re = s.c_re, v.c_im = s.c_im, v.c_reverse_re = s.c_reverse_re;
  v.c_reverse_im = s.c_reverse_im, v.skip = s.D;
  v.initial = swapped(r["initial"], D, N);
  v.initial_reverse = swapped(r["initial_reverse"], D, N);
  const auto out = reference::channel_forward(sequences, D, N, v);
  const auto g = reference::channel_backward(
      sequences, D, N, v, r["dy"], swapped(r["dfinal"], D, N), swapped(r["dfinal_reverse"], D, N));
  Channel<double> d = s;
  d.lambda_re = g.lambda_re, d.lambda_im = g.lambda_im;
  d.c_re = g.c_re, d.c_im = g.c_im;
  d.c_reverse_re = g.c_reverse_re, d.c_reverse_im = g.c_reverse_im, d.D = g.skip;
  return {out.y,       swapped(out.final_state, N, D), swapped(out.final_reverse, N, D),
          g.u,         swapped(g.initial, N, D),       swapped(g.initial_reverse, N, D),
          std::move(d)};
}

class Maps : public ::testing::TestWithParam<std::string> {};

TEST_P(Maps, EqualTheRecordedLayers) {
  const Functions& f = functions().at(GetParam());
  const SafeTensorFile file = testing::open_fixture("layers_" + GetParam() + ".safetensors");
  const nlohmann::json cases = testing::cases_of(file);
  ASSERT_GE(cases.size(), 10u);
  for (const auto& [name, settings] : cases.items()) {
    SCOPED_TRACE(name);
    const Recorded r(file, name);
    const ModelOptions options = testing::options_of(settings);
    testing::OwnedLayer layer(f.tensors(options));
    for (const auto& [tensor, values] : layer.values.tensors) {
      const Doubles recorded = r[(r.has("param/" + tensor) ? "param/" : "buffer/") + tensor];
      ASSERT_EQ(recorded.size(), values.size()) << tensor;
      for (size_t i = 0; i < recorded.size(); ++i) values[i] = static_cast<float>(recorded[i]);
    }
    const MapRequest request{options, {&layer.values, 1}, 2};
    Description<double> description;
    MapTrace trace;
    f.map(request, {&description, 1}, trace);
    const auto offsets = r.integers("offsets");
    const kernels::Sequences sequences{offsets.data(), offsets.size() - 1};
    const Outcome out =
        std::visit([&](const auto& d) { return run(d, sequences, r); }, description);
    testing::expect_close(out.y, r["y"], kOutput, "y");
    testing::expect_close(out.final, r["final"], kOutput, "final");
    testing::expect_close(out.final_reverse, r["final_reverse"], kOutput, "final_reverse");
    testing::expect_close(out.grad_u, r["grad_u"], kGradient, "grad_u");
    testing::expect_close(out.grad_initial, r["grad_initial"], kGradient, "grad_initial");
    testing::expect_close(out.grad_initial_reverse, r["grad_initial_reverse"], kGradient,
                          "grad_initial_reverse");
    f.map_backward(request, trace, {&out.gradient, 1}, {&layer.gradients, 1});
    for (const auto& [tensor, gradient] : layer.gradients) {
      testing::expect_close({gradient.begin(), gradient.end()}, r["grad/" + tensor], kGradient,
                            tensor);
    }
  }
}

// Draws equal those of version 0.1, to two places of float32: another libm, another eigensolver.
TEST_P(Maps, DrawTheRecordedInitialValues) {
  const Functions& f = functions().at(GetParam());
  const SafeTensorFile file = testing::open_fixture("initial_values.safetensors");
  const nlohmann::json cases = testing::cases_of(file);
  int compared = 0;
  for (const auto& [name, settings] : cases.items()) {
    if (settings.at("layer") != GetParam() || settings.contains("input")) continue;
    SCOPED_TRACE(name);
    const Recorded r(file, name);
    const ModelOptions options = testing::options_of(settings);
    testing::OwnedLayer layer(f.tensors(options));
    f.draw(options, settings.at("seed"), settings.at("stream"), layer.values);
    for (const auto& [tensor, values] : layer.values.tensors) {
      const bool parameter = r.has("param/" + tensor);
      const Doubles recorded = r[(parameter ? "param/" : "buffer/") + tensor];
      testing::expect_close({values.begin(), values.end()}, recorded, 2 * 0x1p-23, tensor);
      ++compared;
    }
  }
  EXPECT_GE(compared, 10);
}

INSTANTIATE_TEST_SUITE_P(Layers, Maps, ::testing::Values("rotrnn", "lru", "s5", "s4d"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace rotrnn
