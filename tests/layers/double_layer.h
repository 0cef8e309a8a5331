#pragma once

#include "rotrnn/layers/layer_table.h"
#include "rotrnn/network/batches/packed.h"
#include "rotrnn/network/reference/layer_twin.h"
#include "tests/layers/recorded.h"
#include "tests/support/numbers.h"

namespace rotrnn::testing {

/// A ragged batch in double.
struct DoubleBatch {
  std::vector<int64_t> offsets;
  Doubles u;  // [tokens, D]
  TwinStates initial = {};

  kernels::PackedSequences sequences() const { return {offsets.data(), offsets.size() - 1}; }
};

/// A batch of standard normal numbers.
inline DoubleBatch noise(const std::vector<int64_t>& lengths, int64_t width, uint64_t seed = 7) {
  DoubleBatch batch{{0}, {}, {}};
  for (const int64_t length : lengths) batch.offsets.push_back(batch.offsets.back() + length);
  batch.u = normal(static_cast<size_t>(batch.offsets.back() * width), seed);
  return batch;
}

/// A layer in double: its map, and the plain twins of the kernels behind it.
class DoubleLayer {
 public:
  struct Result {
    Doubles y, z;  // z: all states [tokens, 2S], forward, of a layer that mixes channels
    TwinStates final;
  };
  struct Gradients {
    Doubles u;
    TwinStates initial;
  };

  explicit DoubleLayer(const LayerOptions& options, uint64_t seed = 1, uint64_t stream = 0)
      : options_(options), layer_(kind().tensors(options)) {
    kind().check(options, true);
    kind().draw(options, seed, stream, layer_.values);
  }

  const LayerOptions& options() const { return options_; }
  const LayerKind& kind() const { return layer_kind(options_.layer); }
  const LayerValues& values() const { return layer_.values; }
  int64_t& length() { return layer_.length(); }

  /// A parameter, or its gradient after backward().
  std::span<float> of(const std::string& name) const { return layer_.values.tensors.find(name); }
  std::span<double> gradient(const std::string& name) const { return layer_.gradients.find(name); }
  const Views<double>& gradients() const { return layer_.gradients; }

  size_t state_size() const { return 2 * static_cast<size_t>(kind().states(options_).count); }

  /// Random states of a number of sequences, of all directions.
  TwinStates random_states(size_t sequences, uint64_t seed) const {
    const size_t count = sequences * state_size();
    return {normal(count, seed), options_.bidirectional ? normal(count, seed + 1) : Doubles()};
  }

  /// To multiples of 2⁻¹², for `derivative`.
  void round_values() {
    for (const auto& [name, values] : layer_.values.tensors) {
      for (float& x : values) x = std::round(x * 4096) / 4096;
    }
  }

  const Description<double>& map(int64_t longest) {
    if (kind().prepare != nullptr) kind().prepare(options_, layer_.values, longest);
    kind().map({options_, {&layer_.values, 1}}, {&description_, 1}, trace_);
    return description_;
  }

  Result forward(const DoubleBatch& batch) {
    map(longest_of(batch.offsets));
    config_ = {};
    config_.D = static_cast<size_t>(options_.width);
    config_.norm = Norm::none;
    config_.activation = Activation::none;
    config_.residual = false;
    values_ = {};
    values_.x = batch.u;
    set_layer(description_, values_);
    if (const auto* s = std::get_if<Diagonal<double>>(&description_)) {
      config_.S = static_cast<size_t>(s->states);
      config_.bidirectional = s->bidirectional();
      values_.initial = batch.initial.forward, values_.initial_reverse = batch.initial.reverse;
      run_ = kernels::reference::block_forward(config_, batch.sequences(), values_, {}, {});
      return {run_.out, run_.z[0], {run_.final_state[0], run_.final_state[1]}};
    }
    Result r;
    const auto twin = channel_twin(std::get<Channel<double>>(description_), batch.sequences(),
                                   {.initial = batch.initial, .final = &r.final});
    run_ = kernels::reference::block_forward(config_, batch.sequences(), values_, {}, {}, &twin);
    r.y = run_.out;
    return r;
  }

  /// Gradients of Σ dy⊙y + Σ dfinal⊙final, after forward of the same batch.
  Gradients backward(const DoubleBatch& batch, const Doubles& dy, const TwinStates& dfinal = {}) {
    Description<double> gradient;
    Gradients out;
    if (std::holds_alternative<Diagonal<double>>(description_)) {
      auto g = kernels::reference::block_backward(config_, batch.sequences(), values_, {}, {}, run_,
                                                  dy, dfinal.forward, dfinal.reverse);
      gradient = layer_of(g);
      out = {std::move(g.x), {std::move(g.initial), std::move(g.initial_reverse)}};
    } else {
      const auto twin = channel_twin(std::get<Channel<double>>(description_), batch.sequences(),
                                     {.initial = batch.initial,
                                      .dfinal = dfinal,
                                      .gradient = &gradient,
                                      .dinitial = &out.initial});
      auto g = kernels::reference::block_backward(config_, batch.sequences(), values_, {}, {}, run_,
                                                  dy, dfinal.forward, dfinal.reverse, &twin);
      std::get<Channel<double>>(gradient).D = g.D;
      out.u = std::move(g.x);
    }
    for (const auto& [name, sums] : layer_.gradients) std::fill(sums.begin(), sums.end(), 0.0);
    kind().map_backward({options_, {&layer_.values, 1}}, trace_, {&gradient, 1},
                        {&layer_.gradients, 1});
    return out;
  }

 private:
  LayerOptions options_;
  OwnedLayer layer_;
  Description<double> description_;
  MapTrace trace_;
  kernels::BlockConfig config_;
  kernels::reference::BlockValues<double> values_;
  kernels::reference::BlockTrace<double> run_;
};

}  // namespace rotrnn::testing
