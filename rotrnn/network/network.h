#pragma once

#include <memory>
#include <span>
#include <vector>

#include "rotrnn/network/batches/packed.h"
#include "rotrnn/network/engine.h"
#include "rotrnn/network/options.h"
#include "rotrnn/network/states.h"
#include "rotrnn/network/weights.h"
#include "rotrnn/spec/data_shape.h"

namespace rotrnn {

enum class Mode {
  train,     // batch norm by the batch's statistics, which move the running ones; dropout
  evaluate,  // batch norm by the running statistics
  observe,   // as train, but nothing is dropped and no statistics move
};

/// What dropout depends on besides the position in the network: with the same values a pass draws
/// the same masks, in any process and after any restart.
struct DropoutKey {
  uint64_t seed = 0;
  int64_t step = 0;
  std::span<const int64_t> sequences = {};  // number of each sequence in the whole data set
};

struct NetworkInput {
  PackedInput batch = {};
  Mode mode = Mode::evaluate;
  bool backward = false;  // keep what backward needs
  DropoutKey dropout = {};
  std::vector<BlockStates<const float>> initial = {};  // empty, or one for each block
  std::vector<BlockStates<float>> final = {};          // empty, or where to put them
  // Whether the weights are those of the last pass in the same workspace: the maps of the layers
  // are not computed again.
  bool same_weights = false;
};

/// Gradients that backward starts from.
struct NetworkOutputGradient {
  const float* y = nullptr;                          // null: 0
  std::vector<BlockStates<const float>> final = {};  // empty, or one for each block
};

/// Gradients that backward gives besides those of the parameters; null: not wanted.
struct NetworkInputGradient {
  float* values = nullptr;                       // [rows, channels]
  std::vector<BlockStates<float>> initial = {};  // empty, or one for each block
};

/// The memory of a pass: what forward keeps for backward, and scratch. It grows with the first
/// passes and is reused.
class Workspace {
 public:
  Workspace();
  ~Workspace();
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  struct Impl;
  std::unique_ptr<Impl> impl;
};

/// Front end → encoder → blocks → pooling → head, forward and backward on packed batches.
class Network {
 public:
  /// With initial values drawn by the seed.
  Network(const ModelOptions& options, const DataShape& shape, uint64_t seed);

  /// With the settings of the front end resolved.
  const ModelOptions& options() const { return options_; }
  const DataShape& shape() const { return shape_; }
  Weights& weights() { return weights_; }
  const Weights& weights() const { return weights_; }
  const WeightLayout& layout() const { return weights_.layout(); }

  /// How it computes; may be changed between passes.
  EngineOptions engine;

  /// Numbers per sequence in the states of a block; 0 for a layer that shows none.
  size_t state_size() const;

  /// The outputs, [examples, outputs], or [rows, outputs] without pooling; valid until the next
  /// pass in this workspace. std::invalid_argument for input that does not fit the network.
  std::span<const float> forward(const NetworkInput& input, Workspace& workspace);

  /// The gradients of all parameters, overwritten, after a forward pass that was asked to keep what
  /// this needs; once.
  void backward(const NetworkOutputGradient& gradient, Workspace& workspace, FlatArray& parameters,
                const NetworkInputGradient& input = {});

  /// ‖x_t‖₂ of the hidden state of every block, [tokens, groups] each (the heads of RotRNN), in
  /// mode observe. std::invalid_argument for a layer that shows no states.
  struct StateNorms {
    size_t groups = 0;
    std::vector<std::vector<float>> blocks;
  };
  StateNorms state_norms(const PackedInput& batch, Workspace& workspace);

 private:
  void check(const NetworkInput& input) const;
  std::span<const float> forward_features(const NetworkInput& input, Workspace& workspace);

  ModelOptions options_;
  DataShape shape_;
  Weights weights_;
};

/// The number of outputs' rows of a batch.
size_t output_rows(const ModelOptions& options, const DataShape& shape, const PackedInput& batch);

}  // namespace rotrnn
