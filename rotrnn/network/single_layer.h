#pragma once

#include <memory>
#include <span>
#include <vector>

#include "rotrnn/network/engine.h"
#include "rotrnn/network/network.h"
#include "rotrnn/network/options.h"
#include "rotrnn/network/weights.h"

namespace rotrnn {

/// u [rows, D] of a packed batch; states as in BlockStates.
struct LayerInput {
  std::span<const int64_t> offsets = {};
  const float* u = nullptr;
  bool backward = false;  // keep what backward needs; u must then stay where it is
  BlockStates<const float> initial = {};
};

struct LayerOutput {
  float* y = nullptr;  // [rows, D]
  BlockStates<float> final = {};
};

struct LayerOutputGradient {
  const float* y = nullptr;
  BlockStates<const float> final = {};
};

struct LayerInputGradient {
  float* u = nullptr;  // [rows, D]
  BlockStates<float> initial = {};
};

/// The memory of a pass, as in network.h: a pass in another workspace leaves it alone.
class LayerWorkspace {
 public:
  LayerWorkspace();
  ~LayerWorkspace();
  LayerWorkspace(LayerWorkspace&&) noexcept;
  LayerWorkspace& operator=(LayerWorkspace&&) noexcept;

  struct Impl;
  std::unique_ptr<Impl> impl;
};

/// A recurrent layer by itself, on packed batches, without encoder, norm, activation and head: for
/// programs that have a network of their own around it.
class SingleLayer {
 public:
  /// With initial values drawn by (seed, stream). SettingError for an invalid setting.
  SingleLayer(const LayerOptions& options, uint64_t seed, uint64_t stream = 0);

  const LayerOptions& options() const { return options_; }
  Weights& weights() { return weights_; }
  const WeightLayout& layout() const { return weights_.layout(); }

  /// How it computes; may be changed between passes.
  EngineOptions engine;

  /// Numbers per sequence in the states; 0 for a layer that shows none.
  size_t state_size() const;

  /// std::invalid_argument for input that does not fit the layer.
  void forward(const LayerInput& input, const LayerOutput& output, LayerWorkspace& workspace);
  void forward(const LayerInput& input, const LayerOutput& output) { forward(input, output, own_); }

  /// The gradients of all parameters, overwritten, after a forward pass that was asked to keep what
  /// this needs; once.
  void backward(const LayerOutputGradient& gradient, LayerWorkspace& workspace,
                FlatArray& parameters, const LayerInputGradient& out);
  void backward(const LayerOutputGradient& gradient, FlatArray& parameters,
                const LayerInputGradient& out) {
    backward(gradient, own_, parameters, out);
  }

 private:
  LayerOptions options_;
  Weights weights_;
  LayerWorkspace own_;
};

}  // namespace rotrnn
