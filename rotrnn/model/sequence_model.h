#pragma once

#include <torch/torch.h>

#include <string>
#include <vector>

#include "rotrnn/data/shape.h"
#include "rotrnn/model/block.h"
#include "rotrnn/model/options.h"

namespace rotrnn {

/// The optimiser group of a parameter of a network by its name in it, such as
/// "blocks.0.layer.theta": layers say it of their own parameters, biases and norms are not decayed.
ParameterGroup group_of(const torch::nn::Module& network, const std::string& name);

/// What a pass through a network gives.
struct ModelOutput {
  torch::Tensor y;            // [examples, outputs], or [tokens, outputs] without pooling
  std::vector<States> final;  // one of each block; S4D gives them when asked (Pass::states)
};

/// The whole network: encoder → blocks → pooling → head.
///
/// Input is packed: token numbers [tokens] (int64), or channels [tokens, channels].
class SequenceModelImpl : public torch::nn::Module {
 public:
  SequenceModelImpl(const ModelOptions& options, const DataShape& shape, uint64_t seed);

  /// Runs the network; `initial` is empty or has one entry for each block.
  ModelOutput forward(const Packed& input, const Pass& pass = {},
                      const std::vector<States>& initial = {});

  /// ‖x_t‖₂ of the hidden state of every block, [tokens, heads] each, by the reference path and
  /// without a trace: a training network is as it was.
  std::vector<torch::Tensor> state_norms(const Packed& input);

  /// How it computes; may be changed between passes.
  EngineOptions engine;

  /// True when the next pass runs on the fused kernels as a whole.
  bool uses_fused() const;
  /// True when it may use kernels: float32 on the CPU, unless `engine` says otherwise.
  bool uses_kernels() const;

  const ModelOptions& options() const { return options_; }
  const DataShape& shape() const { return shape_; }

  torch::nn::Embedding embedding = nullptr;  // one of the two
  torch::nn::Linear linear = nullptr;
  std::vector<Block> blocks;
  torch::nn::Linear hidden = nullptr;  // of pairs: [a, b, a - b, a ⊙ b] → D → GELU → head
  torch::nn::Linear head = nullptr;

 private:
  torch::Tensor tell(const torch::Tensor& pooled);
  torch::Tensor encode(const torch::Tensor& values);
  torch::Tensor pool(const Packed& x) const;
  void check_input(const torch::Tensor& values) const;
  torch::Tensor forward_fused(const Packed& input, const Pass& pass,
                              const std::vector<States>& initial, std::vector<States>& final);
  torch::Tensor forward_reference(const Packed& input, const Pass& pass,
                                  const std::vector<States>& initial, std::vector<States>& final);

  ModelOptions options_;
  DataShape shape_;
  WorkspacePool pool_;
};
TORCH_MODULE(SequenceModel);

/// Mean loss over the targets: cross entropy for classes, in which each may have a weight, or mean
/// square error for values.
torch::Tensor loss_of(TargetKind kind, const torch::Tensor& y, const torch::Tensor& targets,
                      const torch::Tensor& class_weights = {});

}  // namespace rotrnn
