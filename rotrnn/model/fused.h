#pragma once

#include <torch/torch.h>

#include <memory>
#include <optional>
#include <vector>

#include "rotrnn/layers/fused_channels.h"
#include "rotrnn/layers/system.h"
#include "rotrnn/model/engine.h"
#include "rotrnn/model/options.h"

namespace rotrnn {

/// One block as the fused kernels take it: float32 on the CPU, undefined where there is none.
struct FusedBlock {
  System system;
  std::optional<FusedChannels> channels;   // in place of the system, but for its D
  torch::Tensor norm_weight, norm_bias;    // evaluating a batch norm: its affine
  torch::Tensor value_weight, value_bias;  // full_glu, exact_glu only
  torch::Tensor gate_weight, gate_bias;
  torch::Tensor mask1, mask2;  // dropout, [sequences, D]
  States initial;
};

/// Encoder, blocks and pooling with everything that one pass needs.
struct FusedNetwork {
  Packed input;                                // token numbers, or channels
  torch::Tensor encoder_weight, encoder_bias;  // no bias: an embedding
  std::vector<FusedBlock> blocks;
  ModelOptions options;
  bool batch_statistics = true;  // batch norm by the batch's own statistics
  EngineOptions engine;
};

/// What a pass gives.
struct FusedOutput {
  torch::Tensor pooled;                              // [sequences, D], or [tokens, D]
  std::vector<States> final;                         // of each block with a system
  std::vector<torch::Tensor> batch_mean, batch_var;  // of each block's batch norm, in double
};

/// Memory for saved activations and workspaces, grown once and reused from step to step. Passes
/// whose graphs are alive at the same time get separate memory.
class WorkspacePool {
 public:
  WorkspacePool();
  ~WorkspacePool();
  struct Workspace;
  c10::intrusive_ptr<Workspace> acquire();

 private:
  std::vector<c10::intrusive_ptr<Workspace>> workspaces_;
};

/// Runs encoder, blocks and pooling by the fused kernels, as one autograd function.
FusedOutput run_fused(const FusedNetwork& network, WorkspacePool& pool);

}  // namespace rotrnn
