#pragma once

#include "rotrnn/layers/registry.h"
#include "rotrnn/network/single_layer.h"
#include "tests/layers/recorded.h"

/// Whether a layer by itself computes, forward and backward, what was recorded of it.
namespace rotrnn::testing {

inline std::vector<float> floats(const Doubles& values) {
  return {values.begin(), values.end()};
}

// A layer with the recorded values; what it has grown to is taken as it was recorded.
inline void load(const Recorded& recorded, Weights& weights) {
  for (const std::string at : {"", "grown_"}) {
    for (const auto& p : weights.layout().parameters) {
      if (!recorded.has(at + "param/" + p.name)) continue;
      const Doubles values = recorded[at + "param/" + p.name];
      std::copy(values.begin(), values.end(), weights.parameters().of(p).begin());
    }
    for (const auto& b : weights.layout().buffers) {
      if (!recorded.has(at + "buffer/" + b.name)) continue;
      if (b.integer) {
        weights.integers()[b.offset] = recorded.integers(at + "buffer/" + b.name)[0];
      } else {
        const Doubles values = recorded[at + "buffer/" + b.name];
        std::copy(values.begin(), values.end(), weights.find(b.name).begin());
      }
    }
  }
}

// Channels have their states recorded as [D, N], the kernels [N, D].
inline Doubles turned(const SingleLayer& layer, const Doubles& states) {
  if (layer.options().layer != "s4d" || states.empty()) return states;
  const auto D = static_cast<size_t>(layer.options().width);
  const size_t each = layer.state_size() / 2, N = each / D;
  Doubles out(states.size());
  for (size_t i = 0; i < states.size(); ++i) {
    out[i / each * each + i % N * D + i % each / N] = states[i];
  }
  return out;
}

inline float* pointer(std::vector<float>& values) {
  return values.empty() ? nullptr : values.data();
}

struct Tolerances {
  double output, gradient;
};

inline void expect_recorded(const SafeTensorFile& file, const std::string& name,
                            const LayerOptions& options, Kernels kernels, MemoryMode memory,
                            const Tolerances& tolerance) {
  SCOPED_TRACE(name);
  const Recorded recorded(file, name);
  SingleLayer layer(options, 0);
  load(recorded, layer.weights());
  layer.engine.kernels = kernels;
  layer.engine.memory = memory;
  layer.engine.threads = 2;
  const auto states = [&](const char* tensor) { return turned(layer, recorded[tensor]); };
  const std::vector<int64_t> offsets = recorded.integers("offsets");
  std::vector<float> u = floats(recorded["u"]), y(u.size()), du(u.size());
  std::vector<float> initial = floats(states("initial"));
  std::vector<float> initial_reverse = floats(states("initial_reverse"));
  std::vector<float> final = floats(states("final"));
  std::vector<float> final_reverse = floats(states("final_reverse"));
  const bool channels = has_channels(options);
  if (channels && kernels == Kernels::fused) {
    if (!initial_reverse.empty()) {
      const LayerInput input{offsets, u.data(), false, {nullptr, initial_reverse.data()}};
      EXPECT_THROW(layer.forward(input, {y.data(), {}}), std::invalid_argument);
      return;
    }
    final_reverse.clear();
  }
  layer.forward({offsets, u.data(), true, {pointer(initial), pointer(initial_reverse)}},
                {y.data(), {pointer(final), pointer(final_reverse)}});
  expect_close({y.begin(), y.end()}, recorded["y"], tolerance.output, "y");
  expect_close({final.begin(), final.end()}, states("final"), tolerance.output, "final");
  if (!final_reverse.empty()) {
    expect_close({final_reverse.begin(), final_reverse.end()}, states("final_reverse"),
                 tolerance.output, "final_reverse");
  } else if (recorded.has("dfinal_reverse")) {
    return;  // the recorded gradients are of a loss that these kernels do not have
  }
  std::vector<float> dy = floats(recorded["dy"]), dfinal = floats(states("dfinal"));
  std::vector<float> dfinal_reverse = floats(states("dfinal_reverse"));
  std::vector<float> dinitial(initial.size()), dinitial_reverse(initial_reverse.size());
  FlatArray gradients(layer.layout());
  layer.backward({dy.data(), {pointer(dfinal), pointer(dfinal_reverse)}}, gradients,
                 {du.data(), {pointer(dinitial), pointer(dinitial_reverse)}});
  for (const auto& p : layer.layout().parameters) {
    const auto got = gradients.of(p);
    // Of gradients that cancel only rounding is left, which ATen's float32 has as well.
    const double error = float32_error(file, name, "grad/" + p.name);
    expect_close({got.begin(), got.end()}, recorded["grad/" + p.name], tolerance.gradient,
                 "gradient of " + p.name, kernels == Kernels::fused ? 2 * error : 0);
  }
  expect_close({du.begin(), du.end()}, recorded["grad_u"], tolerance.gradient, "grad_u");
  expect_close({dinitial.begin(), dinitial.end()}, states("grad_initial"), tolerance.gradient,
               "grad_initial");
  expect_close({dinitial_reverse.begin(), dinitial_reverse.end()}, states("grad_initial_reverse"),
               tolerance.gradient, "grad_initial_reverse");
}

}  // namespace rotrnn::testing
