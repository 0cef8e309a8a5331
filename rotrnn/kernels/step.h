#pragma once

#include "rotrnn/kernels/arena.h"
#include "rotrnn/kernels/block.h"

namespace rotrnn::kernels {

struct Table;

/// Where the state [2S] of a stream is, and whether it is at its beginning (the state is then zero
/// and, with kappa, is set by the first row).
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

  /// Floats that run() needs for so many rows.
  size_t scratch(size_t rows) const;

  /// x [rows, D] becomes the output, in place. One state: the rows are steps of one stream, one
  /// after the other. As many states as rows: a step of each of several streams.
  void run(float* x, size_t rows, const StepState* states, size_t state_count,
           float* scratch) const;

 private:
  float* product(const float* a, size_t K, const float* packed, size_t N, const float* bias,
                 size_t rows, float* out) const;
  void scan(float* v, size_t rows, const StepState* states, size_t state_count) const;

  const Table* simd_;
  BlockConfig config_;
  BlockParameters parameters_;
  const float *W_, *V_, *glu_ = nullptr;  // packed
};

}  // namespace rotrnn::kernels
