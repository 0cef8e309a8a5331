#pragma once

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "rotrnn/network/losses.h"
#include "rotrnn/network/network.h"
#include "tests/layers/recorded.h"

/// Whole networks and what was recorded of them (tests/fixtures/README.md).
namespace rotrnn::testing {

inline ModelOptions network_options(nlohmann::json settings) {
  for (const char* other : {"training", "step", "sequences", "loss", "quantiles", "delta",
                            "global_lr", "recurrent_lr", "weight_decay", "steps"}) {
    settings.erase(other);
  }
  return options_of(settings);
}

inline DataShape shape_of(const nlohmann::json& settings) {
  DataShape shape;
  shape.input = settings.at("input") == "tokens" ? InputKind::tokens : InputKind::channels;
  shape.inputs = settings.at("inputs");
  shape.outputs = settings.at("outputs");
  shape.target = settings.at("target") == "classes" ? TargetKind::classes : TargetKind::values;
  shape.towers = settings.at("towers");
  shape.per_token = settings.at("per_token");
  return shape;
}

/// A network with the recorded weights, its input and its targets.
struct NetworkCase {
  NetworkCase(const SafeTensorFile& file, const std::string& name, const nlohmann::json& settings)
      : recorded(file, name),
        network(network_options(settings), shape_of(settings), 0),
        offsets(recorded.integers("offsets")) {
    load("param/", "buffer/");
    if (recorded.has("tokens")) tokens = recorded.integers("tokens");
    const Doubles given = recorded["values"];
    values.assign(given.begin(), given.end());
    if (network.shape().target == TargetKind::classes) {
      classes = recorded.integers("targets");
    } else {
      const Doubles wanted = recorded["targets"];
      target_values.assign(wanted.begin(), wanted.end());
      loss.loss = Loss::mean_square;
    }
    if (settings.contains("loss")) loss.loss = parse_loss(settings.at("loss"));
    loss.delta = settings.value("delta", loss.delta);
    loss.quantiles = settings.value("quantiles", loss.quantiles);
    loss.class_weights = recorded["class_weights"];
    const Doubles weights = recorded["example_weights"];
    example_weights.assign(weights.begin(), weights.end());
    sequences = settings.at("sequences").get<std::vector<int64_t>>();
    input.batch = {offsets, tokens, values};
    input.mode = settings.at("training") ? Mode::train : Mode::evaluate;
    input.dropout = {settings.at("seed"), settings.at("step"), sequences};
    input.backward = true;
  }
  NetworkCase(const NetworkCase&) = delete;

  /// What the layers have grown to is taken as it was recorded, where it was.
  void load(const std::string& parameters, const std::string& buffers) {
    Weights& w = network.weights();
    for (const auto& p : w.layout().parameters) {
      if (!recorded.has(parameters + p.name)) continue;
      const Doubles values = recorded[parameters + p.name];
      std::copy(values.begin(), values.end(), w.parameters().of(p).begin());
    }
    for (const auto& b : w.layout().buffers) {
      if (!recorded.has(buffers + b.name)) continue;
      if (b.integer) {
        w.integers()[b.offset] = recorded.integers(buffers + b.name)[0];
      } else {
        const Doubles values = recorded[buffers + b.name];
        std::copy(values.begin(), values.end(), w.find(b.name).begin());
      }
    }
  }

  Targets targets() const {
    return {output_rows(network.options(), network.shape(), input.batch), classes.data(),
            target_values.data(), example_weights.empty() ? nullptr : example_weights.data()};
  }
  size_t outputs() const { return static_cast<size_t>(network.shape().outputs); }
  size_t depth() const { return static_cast<size_t>(network.options().depth); }

  /// States of a block: `initial/K`. Channels have them recorded as [D, N], the kernels [N, D].
  Doubles states(const std::string& name, size_t block) const {
    return transposed(recorded[name + "/" + std::to_string(block)], true);
  }
  Doubles transposed(const Doubles& states, bool to_kernels) const {
    if (network.options().layer != "s4d" || states.empty()) return states;
    const auto D = static_cast<size_t>(network.options().width);
    const size_t each = network.state_size() / 2, N = each / D;
    Doubles out(states.size());
    for (size_t i = 0; i < states.size(); ++i) {
      const size_t plane = i / each * each, d = i % each / N, n = i % N;
      const size_t kernel = plane + n * D + d;
      to_kernels ? out[kernel] = states[i] : out[i] = states[kernel];
    }
    return out;
  }

  Recorded recorded;
  Network network;
  std::vector<int64_t> offsets, tokens, classes, sequences;
  std::vector<float> values, target_values, example_weights;
  LossOptions loss;
  NetworkInput input;
};

}  // namespace rotrnn::testing
