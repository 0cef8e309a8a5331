#pragma once

#include "rotrnn/network/frontend.h"
#include "rotrnn/network/reference/reference_pass.h"
#include "tests/network/network_fixture.h"

/// Whether a network computes, forward and backward, what was recorded of it. `cancelled`: the
/// error that a gradient may have besides, as a share of the network's largest: where large terms
/// cancel their rounding is left.
namespace rotrnn::testing {

inline std::vector<ReferencePass::States> states_of(const NetworkCase& c, const std::string& name) {
  std::vector<ReferencePass::States> out;
  for (size_t l = 0; l < c.depth() && c.recorded.has(name + "/0"); ++l) {
    out.push_back({c.states(name, l), c.states(name + "_reverse", l)});
  }
  return out;
}

inline double largest_gradient(const NetworkCase& c) {
  double largest = 0;
  for (const auto& p : c.network.layout().parameters) {
    for (const double g : c.recorded["grad/" + p.name]) largest = std::max(largest, std::abs(g));
  }
  return largest;
}

/// By the twins, in double.
inline void expect_twins(NetworkCase& c, double cancelled = 0) {
  const double absolute = cancelled * largest_gradient(c);
  c.load("grown_param/", "grown_buffer/");
  Network& net = c.network;
  LayerMaps maps;
  NetworkLayers layers(net.options(), net.weights());
  maps.forward(net.options(), layers.values, longest_tokens(net.options().frontend, c.offsets), 2,
               false);
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
    expect_close({from, from + static_cast<ptrdiff_t>(p.count)}, c.recorded["grad/" + p.name], 1e-8,
                 "gradient of " + p.name, absolute);
  }
  expect_close(g.values, c.recorded["grad_values"], 1e-8, "gradient of the values");
  for (size_t l = 0; l < c.depth() && c.recorded.has("grad_initial/0"); ++l) {
    expect_close(g.initial[l].forward, c.states("grad_initial", l), 1e-8, "grad_initial");
    expect_close(g.initial[l].reverse, c.states("grad_initial_reverse", l), 1e-8,
                 "grad_initial_reverse");
  }
}

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

inline Doubles doubles(std::span<const float> values) {
  return {values.begin(), values.end()};
}

// Float32 through two blocks and back: 1e-4 of the largest entry is what the ATen path in float32
// needs too (float32_error of the fixtures).
inline constexpr double kOutput = 2e-5, kGradient = 2e-4;

inline void expect_fused(NetworkCase& c, MemoryMode memory, int threads, double cancelled = 0) {
  const double absolute = cancelled * largest_gradient(c);
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
                 "gradient of " + p.name, absolute);
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

}  // namespace rotrnn::testing
