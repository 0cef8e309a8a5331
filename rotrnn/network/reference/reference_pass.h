#pragma once

#include <vector>

#include "rotrnn/kernels/oracle/block_reference.h"
#include "rotrnn/network/layer_maps.h"
#include "rotrnn/network/network.h"
#include "rotrnn/network/reference/frontend_twin.h"
#include "rotrnn/network/reference/layer_twin.h"
#include "rotrnn/network/tensors.h"

namespace rotrnn {

/// One pass of a network by the plain twins of the kernels. Slow. In double it is what the fused
/// kernels, and the files that are exported, are compared with; in float the yardstick of their
/// errors.
template <class T>
class TwinPass {
 public:
  using Values = std::vector<T>;

  using States = TwinStatesOf<T>;

  /// As NetworkInput, with states in T.
  struct Input {
    PackedInput batch;
    Mode mode = Mode::evaluate;
    DropoutKey dropout;
    std::vector<States> initial;  // empty, or one for each block
  };

  /// The gradients; those of the parameters in the layout of the weights.
  struct Gradients {
    Values parameters, values;
    std::vector<States> initial;
  };

  /// Runs the network, whose layers have been mapped.
  const Values& forward(const ModelOptions& options, const DataShape& shape,
                        const EngineOptions& engine, const Weights& weights, const LayerMaps& maps,
                        const Input& input);

  /// States after the last tokens of every block, of layers that show them.
  const std::vector<States>& final() const { return final_; }

  /// Running statistics after the pass: mean and variance of every block.
  const std::vector<std::pair<Values, Values>>& running() const { return running_; }

  Gradients backward(const ModelOptions& options, NetworkLayers& layers, const Weights& weights,
                     LayerMaps& maps, const Values& dy, const std::vector<States>& dfinal = {});

 private:
  struct HeadTrace {
    Values pooled, joined, sum, hidden;
  };
  void run_block(const ModelOptions& options, const Weights& weights, const LayerMaps& maps,
                 size_t block, Values& x);
  Values pool(const ModelOptions& options, const Values& x) const;
  Values pool_backward(const ModelOptions& options, const Values& dpooled) const;

  Input input_;  // with the tokens' offsets as its batch
  FrontendTwin<T> frontend_;
  kernels::BlockConfig config_;
  std::vector<kernels::reference::BlockValues<T>> values_;
  std::vector<kernels::reference::BlockTrace<T>> traces_;
  std::vector<Values> masks1_, masks2_;
  HeadTrace head_;
  Values y_;
  size_t rows_ = 0, outputs_ = 0, inputs_ = 0;
  std::vector<States> final_;
  std::vector<std::pair<Values, Values>> running_;
};

using ReferencePass = TwinPass<double>;

}  // namespace rotrnn
