#pragma once

#include <optional>

#include "rotrnn/base/arena.h"
#include "rotrnn/kernels/block/block.h"
#include "rotrnn/kernels/recurrence/channel_step.h"

namespace rotrnn::kernels {

struct Table;

/// Where the state of a stream is, and whether it is at its beginning (the state is then zero and,
/// with start, is set by the first row).
struct StepState {
  float* state;
  bool fresh;
};

/// weight [outputs, inputs], packed for products x·weightᵀ by the table in use.
const float* pack_weight(const float* weight, size_t inputs, size_t outputs, Arena& memory);

/// A block of a trained network as streams use it: a few rows at a time, forward only, on one
/// thread, with weights packed once. The formulas are in block.h; a batch norm is the affine in
/// norm_weight and norm_bias, and masks are not.
class StepBlock {
 public:
  /// Packs the weights into `memory`; what `parameters` points to besides must outlive this.
  StepBlock(const BlockConfig& config, const BlockParameters& parameters, Arena& memory);

  /// A block with a layer of channels: of the one in `parameters` only D is used.
  StepBlock(const BlockConfig& config, const BlockParameters& parameters,
            const ChannelStepLayer& channels, Arena& memory);

  /// Floats of a state: [2S], or that of ChannelStepper. States and scratch are aligned to a cache
  /// line.
  size_t state_size() const;
  /// |z|, the norm of a state over all its complex numbers.
  float state_norm(const float* state) const;
  /// Floats that run() needs for so many rows.
  size_t scratch(size_t rows) const;

  /// x [rows, D] becomes the output, in place. One state: the rows are steps of one stream, one
  /// after the other. As many states as rows: a step of each of several streams.
  void run(float* x, size_t rows, const StepState* states, size_t state_count,
           float* scratch) const;

  /// The channels of such a block, else null; and, for whole sequences, what is before and behind
  /// them: u, which is x or made in `normed`, and x from y = the channels of u.
  const ChannelStepper* channels() const { return channels_ ? &*channels_ : nullptr; }
  bool norms_input() const { return config_.norm != Norm::none && config_.prenorm; }
  const float* branch_input(const float* x, size_t rows, float* normed) const;
  void finish(float* x, const float* u, float* y, size_t rows, float* scratch) const;

 private:
  void norm(const float* x, size_t rows, float* out) const;
  void pack_gates(Arena& memory);
  float* product(const float* a, size_t K, const float* packed, size_t N, const float* bias,
                 size_t rows, float* out) const;
  void scan(float* v, size_t rows, const StepState* states, size_t state_count) const;

  const Table* simd_;
  BlockConfig config_;
  BlockParameters parameters_;
  const float *W_ = nullptr, *V_ = nullptr, *glu_ = nullptr;  // packed
  std::optional<ChannelStepper> channels_;
};

}  // namespace rotrnn::kernels
