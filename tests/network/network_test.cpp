#include "rotrnn/network/network.h"

#include <gtest/gtest.h>

#include <thread>

#include "rotrnn/network/reference_pass.h"
#include "tests/network/network_fixture.h"

namespace rotrnn {
namespace {

using testing::cases_of;
using testing::Doubles;
using testing::expect_close;
using testing::NetworkCase;
using testing::open_fixture;

using States = std::vector<ReferencePass::States>;

template <class F>
void for_cases(const F& f) {
  const SafeTensorFile file = open_fixture("networks.safetensors");
  const nlohmann::json cases = cases_of(file);
  for (const auto& [name, settings] : cases.items()) {
    SCOPED_TRACE(name);
    NetworkCase c(file, name, settings);
    f(c);
  }
}

States states_of(const NetworkCase& c, const std::string& name) {
  States out;
  for (size_t l = 0; l < c.depth() && c.recorded.has(name + "/0"); ++l) {
    out.push_back({c.states(name, l), c.states(name + "_reverse", l)});
  }
  return out;
}

// ---------------------------------------------------------------- the twins, in double

TEST(ReferenceNetwork, OutputsLossAndGradientsAreTheRecordedOnes) {
  for_cases([](NetworkCase& c) {
    c.load("grown_param/", "grown_buffer/");
    Network& net = c.network;
    LayerMaps maps;
    NetworkLayers layers(net.options(), net.weights());
    maps.forward(net.options(), layers.values, longest_of(c.offsets), 2, false);
    ReferencePass pass;
    const Doubles y =
        pass.forward(net.options(), net.shape(), {}, net.weights(), maps,
                     {c.input.batch, c.input.mode, c.input.dropout, states_of(c, "initial")});
    expect_close(y, c.recorded["y"], 1e-10, "y");
    Doubles dy(y.size());
    const double loss = loss_of(c.loss, c.targets(), y.data(), c.outputs(), dy.data());
    expect_close({loss}, c.recorded["loss"], 1e-10, "loss");
    for (size_t l = 0; l < pass.final().size() && c.recorded.has("final/0"); ++l) {
      expect_close(pass.final()[l].forward, c.states("final", l), 1e-10, "final");
      expect_close(pass.final()[l].reverse, c.states("final_reverse", l), 1e-10, "final_reverse");
    }
    for (size_t l = 0; l < c.depth(); ++l) {
      const std::string at = "running/blocks." + std::to_string(l) + ".norm.running_";
      expect_close(pass.running()[l].first, c.recorded[at + "mean"], 1e-10, at + "mean");
      expect_close(pass.running()[l].second, c.recorded[at + "var"], 1e-10, at + "var");
    }
    const auto g =
        pass.backward(net.options(), layers, net.weights(), maps, dy, states_of(c, "dfinal"));
    for (const auto& p : net.layout().parameters) {
      const auto from = g.parameters.begin() + static_cast<ptrdiff_t>(p.offset);
      expect_close({from, from + static_cast<ptrdiff_t>(p.count)}, c.recorded["grad/" + p.name],
                   1e-8, "gradient of " + p.name);
    }
    expect_close(g.values, c.recorded["grad_values"], 1e-8, "gradient of the values");
    for (size_t l = 0; l < c.depth() && c.recorded.has("grad_initial/0"); ++l) {
      expect_close(g.initial[l].forward, c.states("grad_initial", l), 1e-8, "grad_initial");
      expect_close(g.initial[l].reverse, c.states("grad_initial_reverse", l), 1e-8,
                   "grad_initial_reverse");
    }
  });
}

// ---------------------------------------------------------------- the fused kernels

// The states of all blocks in memory of their own.
struct OwnStates {
  OwnStates(const NetworkCase& c, const std::string& name) {
    for (size_t l = 0; l < c.depth() && c.recorded.has(name + "/0"); ++l) {
      const Doubles f = c.states(name, l), r = c.states(name + "_reverse", l);
      forward.emplace_back(f.begin(), f.end());
      reverse.emplace_back(r.begin(), r.end());
    }
  }
  template <class T>
  std::vector<BlockStates<T>> views() {
    std::vector<BlockStates<T>> out;
    for (size_t l = 0; l < forward.size(); ++l) {
      out.push_back({forward[l].data(), reverse[l].empty() ? nullptr : reverse[l].data()});
    }
    return out;
  }
  std::vector<std::vector<float>> forward, reverse;
};

Doubles doubles(std::span<const float> values) {
  return {values.begin(), values.end()};
}

// Float32 through two blocks and back: 1e-4 of the largest entry is what the ATen path in float32
// needs too (float32_error of the fixtures).
constexpr double kOutput = 2e-5, kGradient = 2e-4;

void expect_fused(NetworkCase& c, MemoryMode memory, int threads) {
  Network& net = c.network;
  net.engine.memory = memory;
  net.engine.threads = threads;
  OwnStates initial(c, "initial"), final(c, "final"), dfinal(c, "dfinal"),
      dinitial(c, "grad_initial");
  c.input.initial = initial.views<const float>();
  c.input.final = final.views<float>();
  Workspace workspace;
  if (net.options().layer == "s4d" && c.recorded.has("initial_reverse/0")) {
    EXPECT_THROW(net.forward(c.input, workspace), std::invalid_argument);
    return;
  }
  const auto y = net.forward(c.input, workspace);
  expect_close(doubles(y), c.recorded["y"], kOutput, "y");
  std::vector<float> dy(y.size());
  const double loss = loss_of(c.loss, c.targets(), y.data(), c.outputs(), dy.data());
  expect_close({loss}, c.recorded["loss"], kOutput, "loss");
  for (size_t l = 0; l < final.forward.size(); ++l) {
    expect_close(doubles(final.forward[l]), c.states("final", l), kOutput, "final");
    expect_close(doubles(final.reverse[l]), c.states("final_reverse", l), kOutput, "final_reverse");
  }
  FlatArray gradients(net.layout());
  std::vector<float> dvalues(c.values.size());
  net.backward({dy.data(), dfinal.views<const float>()}, workspace, gradients,
               {dvalues.data(), dinitial.views<float>()});
  for (const auto& p : net.layout().parameters) {
    expect_close(doubles(gradients.of(p)), c.recorded["grad/" + p.name], kGradient,
                 "gradient of " + p.name);
  }
  expect_close(doubles(dvalues), c.recorded["grad_values"], kGradient, "gradient of the values");
  for (size_t l = 0; l < dinitial.forward.size(); ++l) {
    expect_close(doubles(dinitial.forward[l]), c.states("grad_initial", l), kGradient,
                 "grad_initial");
    expect_close(doubles(dinitial.reverse[l]), c.states("grad_initial_reverse", l), kGradient,
                 "grad_initial_reverse");
  }
  for (const auto& b : net.layout().buffers) {
    if (b.name.find("running_") == std::string::npos) continue;
    expect_close(doubles(net.weights().find(b.name)), c.recorded["running/" + b.name], kOutput,
                 b.name);
  }
}

TEST(FusedNetwork, OutputsLossAndGradientsAreTheRecordedOnes) {
  for_cases([](NetworkCase& c) { expect_fused(c, MemoryMode::normal, 2); });
}

TEST(FusedNetwork, LowMemoryComputesTheSame) {
  for_cases([](NetworkCase& c) { expect_fused(c, MemoryMode::low, 3); });
}

TEST(FusedNetwork, LayersGrowToTheBatchAsRecorded) {
  size_t grown = 0;
  for_cases([&](NetworkCase& c) {
    Workspace workspace;
    if (!c.recorded.has("grown_buffer/blocks.0.layer.length")) return;
    c.network.forward(c.input, workspace);
    for (const auto& p : c.network.layout().parameters) {
      const std::string name = "grown_param/" + p.name;
      if (!c.recorded.has(name)) continue;
      expect_close(doubles(c.network.weights().parameters().of(p)), c.recorded[name], 1e-6, name);
    }
    ++grown;
  });
  EXPECT_GE(grown, 1u);
}

}  // namespace
}  // namespace rotrnn
