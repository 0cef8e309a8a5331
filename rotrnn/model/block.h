#pragma once

#include <torch/torch.h>

#include "rotrnn/layers/layer.h"
#include "rotrnn/model/fused.h"
#include "rotrnn/model/norm.h"
#include "rotrnn/model/options.h"

namespace rotrnn {

/// What randomness in a pass depends on, besides the place in the network: with the same values a
/// pass draws the same dropout masks, in any process and after any restart.
struct Pass {
  uint64_t seed = 0;
  int64_t step = 0;
  std::vector<int64_t> sequences;  // number of each sequence of the batch in the whole data set
  bool states = false;             // final states are wanted, though it may take longer
  bool watching = false;           // leave no trace: nothing is dropped, running statistics stay
};

/// Dropout masks [sequences, width], one value per sequence and channel, already scaled.
torch::Tensor dropout_mask(const Pass& pass, int64_t block, int64_t site, int64_t width,
                           double probability, const torch::TensorOptions& options);

/// One residual block: norm, layer, activation, dropout; the formulas are in docs/architecture.md.
class BlockImpl : public torch::nn::Module {
 public:
  BlockImpl(const ModelOptions& options, int64_t index, uint64_t seed);

  /// The block as the fused kernels take it, `system` being the map of its
  /// layer, or empty.
  FusedBlock fused(const System& system, const Layout& layout, const Pass& pass,
                   const States& initial);

  /// Runs the block in ATen operations; what its layer gave goes to `seen` when that is given.
  /// `fast`: the layer may use kernels of its own.
  torch::Tensor forward(const Packed& x, const Pass& pass, const States& initial = {},
                        SystemOutput* seen = nullptr, bool fast = false);

  std::shared_ptr<Layer> layer;
  Norm norm = nullptr;
  torch::nn::Linear value = nullptr, gate = nullptr;  // W1 (full_glu, exact_glu) and W2

 private:
  torch::Tensor activate(const torch::Tensor& x, const Layout& layout, const Pass& pass);
  torch::Tensor drop(const torch::Tensor& x, const Layout& layout, const Pass& pass, int64_t site);
  /// The mask of a site, undefined when nothing is dropped.
  torch::Tensor mask(const Layout& layout, const Pass& pass, int64_t site,
                     const torch::TensorOptions& options);

  ModelOptions options_;
  int64_t index_;
};
TORCH_MODULE(Block);

}  // namespace rotrnn
