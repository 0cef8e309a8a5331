#pragma once

#include <torch/torch.h>

#include "rotrnn/kernels/block.h"
#include "rotrnn/model/options.h"

namespace rotrnn {

/// Batch norm over all tokens of a batch (biased variance), or layer norm over the width.
///
/// running ← momentum·running + (1 - momentum)·batch, the running variance being biased too, so
/// that what evaluation uses is what training used.
class NormImpl : public torch::nn::Module {
 public:
  static constexpr double kEpsilon = 1e-5;

  NormImpl(NormKind kind, int64_t width, double momentum);

  /// `update`: a batch norm in training mode also moves its running statistics. `reduce` sums its
  /// statistics over the processes that share the batch, if there are several.
  torch::Tensor forward(const torch::Tensor& x, bool update = true,
                        const kernels::Reduce& reduce = {});

  /// Weight and bias as the fused kernels take them: those of the parameters, or, when a batch norm
  /// is evaluated, with the running statistics in them.
  std::pair<torch::Tensor, torch::Tensor> affine() const;

  /// Moves the running statistics towards those of a batch; nothing for a layer norm.
  void update_running(const torch::Tensor& mean, const torch::Tensor& var);

  torch::Tensor weight, bias, running_mean, running_var;

 private:
  NormKind kind_;
  double momentum_;
};
TORCH_MODULE(Norm);

}  // namespace rotrnn
