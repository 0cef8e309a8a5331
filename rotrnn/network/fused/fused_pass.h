#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "rotrnn/base/arena.h"
#include "rotrnn/kernels/block/block.h"
#include "rotrnn/network/frontend.h"
#include "rotrnn/network/fused/channel_runner.h"
#include "rotrnn/network/heads.h"
#include "rotrnn/network/layer_maps.h"
#include "rotrnn/network/network.h"
#include "rotrnn/network/parts.h"

namespace rotrnn {

/// One pass of a network on the fused kernels, with the memory for it.
class FusedPass {
 public:
  /// What every call is given.
  struct Context {
    const ModelOptions& options;
    const DataShape& shape;
    const EngineOptions& engine;
    Weights& weights;
    LayerMaps& maps;
  };

  /// The outputs. Moves the running statistics in mode train.
  std::span<const float> forward(const Context& context, const NetworkInput& input);

  /// Gradients of all parameters but those of the layers, whose descriptions' gradients go to the
  /// maps.
  void backward(const Context& context, const NetworkOutputGradient& gradient, FlatArray& out,
                const NetworkInputGradient& input);

  /// Norms of the states of every block, [rows, groups] each, as forward in mode observe sees them.
  void norms(const Context& context, const PackedInput& batch,
             std::vector<std::vector<float>>& out);

 private:
  kernels::PackedSequences sequences() const;
  kernels::BlockConfig config(const Context& context) const;
  kernels::BlockParameters parameters(const Context& context, size_t block) const;
  kernels::BlockInput block_input(size_t block) const;
  kernels::BlockGradients block_gradients(const Context& context, size_t block,
                                          const NetworkParts<float>& parts,
                                          const NetworkInputGradient& input);
  std::optional<kernels::SequenceLayer> sequence_layer(const Context& context, size_t block);
  void take_memory(const Context& context);
  void draw_masks(const Context& context);
  void set_norms(const Context& context);
  Frontend::Input frontend_input(const Context& context) const;
  void read_tokens(const Context& context);
  void encode(const Context& context);
  void encode_backward(const Context& context, const float* dx, FlatArray& out, float* dvalues);
  void run_blocks(const Context& context);
  void move_statistics(const Context& context, size_t block) const;
  void block_norms(const Context& context, size_t block, std::vector<float>& out) const;

  NetworkInput input_;   // with the tokens as its batch
  PackedInput samples_;  // the batch as it was given
  Frontend frontend_;
  NetworkParts<float> parts_;
  ChannelRunner channels_;
  Head head_;
  kernels::Arena saved_, scratch_;
  std::vector<kernels::BlockSaved> blocks_;
  std::vector<float*> x_;                 // [depth + 1]: inputs of the blocks and the last output
  std::vector<float*> mask1_, mask2_;     // null: nothing is dropped
  std::vector<float*> kept_;              // of the channels
  std::vector<LinearParts<float>> norm_;  // as the kernels take them
  std::vector<std::vector<float>>* norms_ = nullptr;  // null: not wanted
  // Where the sequence layer of the block that runs backward has its states' gradients.
  const float* final_gradient_ = nullptr;
  float* initial_out_ = nullptr;
  bool pending_ = false;  // forward is done and backward is not
};

}  // namespace rotrnn
