#pragma once

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "rotrnn/base/random.h"
#include "rotrnn/network/frontend.h"
#include "rotrnn/network/reference/reference_pass.h"

/// Everything that a pass of a network gives, forward and backward, by name: of the fused kernels,
/// and of their twins in float or double.
namespace rotrnn::testing {

using Results = std::map<std::string, std::vector<double>>;

inline std::vector<float> normal_floats(Random& random, size_t count, double mean = 0) {
  std::vector<float> out(count);
  for (float& x : out) x = static_cast<float>(random.normal() + mean);
  return out;
}

/// What a pass starts from, forward and backward; states of every block, or none.
struct PassInput {
  NetworkInput network;
  std::vector<TwinStatesOf<float>> initial, dfinal;
  std::function<std::vector<double>(const std::vector<double>& y)> dy;
};

namespace detail {

template <class From>
std::vector<double> doubles(const From& values) {
  return {values.begin(), values.end()};
}

template <class T>
std::vector<BlockStates<T>> views(std::vector<TwinStatesOf<float>>& states) {
  std::vector<BlockStates<T>> out;
  for (auto& s : states) {
    out.push_back({s.forward.empty() ? nullptr : s.forward.data(),
                   s.reverse.empty() ? nullptr : s.reverse.data()});
  }
  return out;
}

template <class T>
void add_states(const std::string& name, const std::vector<TwinStatesOf<T>>& states, Results& out) {
  for (size_t l = 0; l < states.size(); ++l) {
    if (!states[l].forward.empty()) out[fmt::format("{}{}", name, l)] = doubles(states[l].forward);
    if (states[l].reverse.empty()) continue;
    out[fmt::format("{}_reverse{}", name, l)] = doubles(states[l].reverse);
  }
}

template <class Gradients>
void add_gradients(const WeightLayout& layout, const Gradients& gradients, Results& out) {
  for (const auto& p : layout.parameters) {
    out["d " + p.name] = {gradients.data() + p.offset, gradients.data() + p.offset + p.count};
  }
}

template <class T>
std::vector<TwinStatesOf<T>> as(const std::vector<TwinStatesOf<float>>& states) {
  std::vector<TwinStatesOf<T>> out;
  for (const auto& s : states) {
    out.push_back({{s.forward.begin(), s.forward.end()}, {s.reverse.begin(), s.reverse.end()}});
  }
  return out;
}

}  // namespace detail

inline Results run_fused(Network& network, PassInput in) {
  NetworkInput& input = in.network;
  std::vector<TwinStatesOf<float>> final = in.dfinal, dinitial = in.initial;
  input.backward = true;
  input.initial = detail::views<const float>(in.initial);
  input.final = detail::views<float>(final);
  Workspace workspace;
  const auto y = network.forward(input, workspace);
  Results out{{"y", detail::doubles(y)}};
  detail::add_states("final", final, out);
  const std::vector<double> exact = in.dy(out["y"]);
  const std::vector<float> dy(exact.begin(), exact.end());
  FlatArray gradients(network.layout());
  std::vector<float> dvalues(input.batch.values.size());
  network.backward({dy.data(), detail::views<const float>(in.dfinal)}, workspace, gradients,
                   {dvalues.data(), detail::views<float>(dinitial)});
  detail::add_gradients(network.layout(), gradients, out);
  if (!dvalues.empty()) out["d input"] = detail::doubles(dvalues);
  detail::add_states("d initial", dinitial, out);
  for (const auto& b : network.layout().buffers) {
    if (!b.integer) out[b.name] = detail::doubles(network.weights().find(b.name));
  }
  return out;
}

/// The same by the twins, of which what moves with a pass stays in the network as it was.
template <class T>
Results run_twins(Network& network, const PassInput& in) {
  const ModelOptions& m = network.options();
  Weights& weights = network.weights();
  LayerMaps maps;
  NetworkLayers layers(m, weights);
  maps.forward(m, layers.values, longest_tokens(m.frontend, in.network.batch.offsets), 1, false);
  TwinPass<T> pass;
  const auto y = pass.forward(
      m, network.shape(), network.engine, weights, maps,
      {in.network.batch, in.network.mode, in.network.dropout, detail::as<T>(in.initial)});
  Results out{{"y", detail::doubles(y)}};
  auto final = pass.final();
  final.resize(in.dfinal.size());
  for (size_t l = 0; l < final.size(); ++l) {
    if (in.dfinal[l].reverse.empty()) final[l].reverse.clear();
  }
  detail::add_states("final", final, out);
  const std::vector<double> dy = in.dy(out["y"]);
  auto g =
      pass.backward(m, layers, weights, maps, {dy.begin(), dy.end()}, detail::as<T>(in.dfinal));
  detail::add_gradients(network.layout(), g.parameters, out);
  if (!g.values.empty()) out["d input"] = detail::doubles(g.values);
  g.initial.resize(in.initial.size());
  for (size_t l = 0; l < g.initial.size(); ++l) {
    if (in.initial[l].reverse.empty()) g.initial[l].reverse.clear();
  }
  detail::add_states("d initial", g.initial, out);
  for (const auto& b : network.layout().buffers) {
    if (!b.integer) out[b.name] = detail::doubles(weights.find(b.name));
  }
  for (size_t l = 0; l < pass.running().size() && m.norm == Norm::batch; ++l) {
    const std::string at = fmt::format("blocks.{}.norm.running_", l);
    out[at + "mean"] = detail::doubles(pass.running()[l].first);
    out[at + "var"] = detail::doubles(pass.running()[l].second);
  }
  return out;
}

/// Which network, and on what it is run.
struct PassCase {
  std::string name;
  ModelOptions model;
  DataShape shape{InputKind::channels, 3, TargetKind::classes, 4};
  std::vector<int64_t> lengths{5, 1, 70, 130};
  bool evaluating = false;
  bool states = false;
};

inline void PrintTo(const PassCase& c, std::ostream* out) {
  *out << c.name;
}

/// Of no size that fits a vector.
inline ModelOptions odd_sizes() {
  ModelOptions m;
  m.width = 13;
  m.state = 15;
  m.rotrnn.heads = 3;
  m.depth = 3;
  m.rotrnn.init.theta_max = 3;
  return m;
}

/// A network of a seed, and all that goes into a pass, in float32.
struct Problem {
  Problem(const PassCase& c, uint64_t seed) : network(c.model, c.shape, seed) {
    Random random(seed, RandomSite::trial);
    for (const int64_t length : c.lengths) {
      offsets.push_back(offsets.back() + length);
      numbers.push_back(100 + std::ssize(numbers));
    }
    const auto rows = static_cast<size_t>(offsets.back());
    if (c.shape.input == InputKind::tokens) {
      for (size_t i = 0; i < rows; ++i) {
        tokens.push_back(random.below(static_cast<uint32_t>(c.shape.inputs)));
      }
    } else {
      values = normal_floats(random, rows * static_cast<size_t>(c.shape.inputs));
    }
    input.network.batch = {offsets, tokens, values};
    input.network.mode = c.evaluating ? Mode::evaluate : Mode::train;
    input.network.dropout = {5, 2, numbers};
    const size_t y =
        output_rows(c.model, c.shape, input.network.batch) * static_cast<size_t>(c.shape.outputs);
    input.dy = [dy = detail::doubles(normal_floats(random, y))](const auto&) { return dy; };
    if (c.evaluating) {
      for (float& x : network.weights().buffers()) x += 0.3f;
    }
    // The fused channel kernels have no reverse state.
    const bool reverse = c.model.bidirectional && c.model.layer != "s4d";
    const size_t states = numbers.size() * network.state_size();
    for (int64_t l = 0; c.states && l < c.model.depth; ++l) {
      for (auto* to : {&input.initial, &input.dfinal}) {
        to->push_back({normal_floats(random, states), normal_floats(random, reverse ? states : 0)});
      }
    }
  }
  Problem(const Problem&) = delete;

  Network network;
  std::vector<int64_t> offsets{0}, numbers, tokens;
  std::vector<float> values;
  PassInput input;
};

inline Results fused(const PassCase& c, uint64_t seed, MemoryMode memory, int threads) {
  Problem p(c, seed);
  p.network.engine.memory = memory;
  p.network.engine.threads = threads;
  return run_fused(p.network, p.input);
}

template <class T>
Results twins(const PassCase& c, uint64_t seed) {
  Problem p(c, seed);
  return run_twins<T>(p.network, p.input);
}

}  // namespace rotrnn::testing
