// The parameter maps and their adjoints with the scalar twins behind them, in double, against what
// the ATen path of version 0.1 computed.
#include "rotrnn/kernels/oracle/block_reference.h"
#include "rotrnn/kernels/oracle/channel_reference.h"
#include "rotrnn/layers/layer_table.h"
#include "tests/layers/recorded.h"

namespace rotrnn {
namespace {

namespace reference = kernels::reference;
using testing::Doubles;
using testing::Recorded;

constexpr double kOutput = 1e-10, kGradient = 1e-8;

// What a pass gives, and the gradient of the description and of what went in.
struct Outcome {
  Doubles y, final, final_reverse, grad_u, grad_initial, grad_initial_reverse;
  Description<double> gradient;
};

Outcome run(const Diagonal<double>& s, const kernels::PackedSequences& sequences,
            const Recorded& r) {
  kernels::BlockConfig c;
  c.D = static_cast<size_t>(s.width);
  c.S = static_cast<size_t>(s.states);
  c.activation = Activation::none;
  c.norm = Norm::none;
  c.residual = false;
  c.bidirectional = s.bidirectional();
  reference::BlockValues<double> v;
  v.x = r["u"];
  static_cast<Diagonal<double>&>(v) = s;
  v.initial = r["initial"], v.initial_reverse = r["initial_reverse"];
  const auto trace = reference::block_forward(c, sequences, v, {}, {});
  const auto g = reference::block_backward(c, sequences, v, {}, {}, trace, r["dy"], r["dfinal"],
                                           r["dfinal_reverse"]);
  Diagonal<double> d = g;
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

Outcome run(const Channel<double>& s, const kernels::PackedSequences& sequences,
            const Recorded& r) {
  const auto D = static_cast<size_t>(s.width), N = static_cast<size_t>(s.states);
  reference::ChannelValues<double> v;
  v.u = r["u"];
  static_cast<Channel<double>&>(v) = s;
  v.initial = swapped(r["initial"], D, N);
  v.initial_reverse = swapped(r["initial_reverse"], D, N);
  const auto out = reference::channel_forward(sequences, D, N, v);
  const auto g = reference::channel_backward(
      sequences, D, N, v, r["dy"], swapped(r["dfinal"], D, N), swapped(r["dfinal_reverse"], D, N));
  Channel<double> d = g;
  return {out.y,       swapped(out.final_state, N, D), swapped(out.final_reverse, N, D),
          g.u,         swapped(g.initial, N, D),       swapped(g.initial_reverse, N, D),
          std::move(d)};
}

class Maps : public ::testing::TestWithParam<std::string> {};

TEST_P(Maps, EqualTheRecordedLayers) {
  const LayerKind& kind = layer_kind(GetParam());
  const SafeTensorFile file = testing::open_fixture("layers_" + GetParam() + ".safetensors");
  const nlohmann::json cases = testing::cases_of(file);
  ASSERT_GE(cases.size(), 10u);
  for (const auto& [name, settings] : cases.items()) {
    SCOPED_TRACE(name);
    const Recorded r(file, name);
    const ModelOptions options = testing::options_of(settings);
    testing::OwnedLayer layer = testing::recorded_layer(kind.tensors(options), r);
    const MapRequest request{options, {&layer.values, 1}, 2};
    Description<double> description;
    MapTrace trace;
    kind.map(request, {&description, 1}, trace);
    const auto offsets = r.integers("offsets");
    const kernels::PackedSequences sequences{offsets.data(), offsets.size() - 1};
    const Outcome out =
        std::visit([&](const auto& d) { return run(d, sequences, r); }, description);
    testing::expect_close(out.y, r["y"], kOutput, "y");
    testing::expect_close(out.final, r["final"], kOutput, "final");
    testing::expect_close(out.final_reverse, r["final_reverse"], kOutput, "final_reverse");
    testing::expect_close(out.grad_u, r["grad_u"], kGradient, "grad_u");
    testing::expect_close(out.grad_initial, r["grad_initial"], kGradient, "grad_initial");
    testing::expect_close(out.grad_initial_reverse, r["grad_initial_reverse"], kGradient,
                          "grad_initial_reverse");
    kind.map_backward(request, trace, {&out.gradient, 1}, {&layer.gradients, 1});
    for (const auto& [tensor, gradient] : layer.gradients) {
      testing::expect_close(gradient, r["grad/" + tensor], kGradient, tensor);
    }
  }
}

// What a stream runs: of layers that mix channels the description itself.
TEST_P(Maps, RecurrencesAreTheRecordedOnes) {
  const LayerKind& kind = layer_kind(GetParam());
  const SafeTensorFile file = testing::open_fixture("layers_" + GetParam() + ".safetensors");
  const nlohmann::json cases = testing::cases_of(file);
  for (const auto& [name, settings] : cases.items()) {
    SCOPED_TRACE(name);
    const Recorded r(file, name);
    const ModelOptions options = testing::options_of(settings);
    testing::OwnedLayer layer = testing::recorded_layer(kind.tensors(options), r);
    const Recurrence recurrence = kind.recurrence(options, layer.values, true);
    if (kind.channels) {
      testing::expect_recurrence(std::get<ChannelSteps>(recurrence), r, kOutput);
      continue;
    }
    const auto offsets = r.integers("offsets");
    const kernels::PackedSequences sequences{offsets.data(), offsets.size() - 1};
    const Outcome out = run(std::get<Diagonal<double>>(recurrence), sequences, r);
    testing::expect_close(out.y, r["y"], kOutput, "y");
  }
}

// Draws equal those of version 0.1, to two places of float32: another libm, another eigensolver.
TEST_P(Maps, DrawTheRecordedInitialValues) {
  const LayerKind& kind = layer_kind(GetParam());
  const SafeTensorFile file = testing::open_fixture("initial_values.safetensors");
  const nlohmann::json cases = testing::cases_of(file);
  int compared = 0;
  for (const auto& [name, settings] : cases.items()) {
    if (settings.at("layer") != GetParam() || settings.contains("input")) continue;
    SCOPED_TRACE(name);
    const Recorded r(file, name);
    const ModelOptions options = testing::options_of(settings);
    testing::OwnedLayer layer(kind.tensors(options));
    kind.draw(options, settings.at("seed"), settings.at("stream"), layer.values);
    for (const auto& [tensor, values] : layer.values.tensors) {
      const bool parameter = r.has("param/" + tensor);
      const Doubles recorded = r[(parameter ? "param/" : "buffer/") + tensor];
      testing::expect_close(values, recorded, 2 * 0x1p-23, tensor);
      ++compared;
    }
  }
  EXPECT_GE(compared, 10);
}

INSTANTIATE_TEST_SUITE_P(Layers, Maps, ::testing::Values("rotrnn", "lru", "s5", "s4d"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace rotrnn
