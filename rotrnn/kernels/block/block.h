#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "rotrnn/base/arena.h"
#include "rotrnn/kernels/block/plan.h"
#include "rotrnn/kernels/gemm/gemm.h"
#include "rotrnn/spec/description.h"
#include "rotrnn/spec/kinds.h"

/// The fused block on packed ragged batches: letters D (width), S (complex states), n (tokens).
///
///   u = norm(x)                                    prenorm: batch, layer or none
///   z_t = λ⊙z_{t-1} + W u_t + b                    also backwards in time if bidirectional
///   y = V·[Re z; Im z] (+ V_reverse·z←) + D⊙u + e
///   o = activation(y)                              formulas in activations.h
///   out = x + o                                    postnorm: out = norm(x + o) and u = x
///
/// With Norm::none, Activation::none and no residual this is the bare layer: out = y. A layer of
/// another kind takes the place of z, W and V as a SequenceLayer, between two walks over the tiles.
/// Each sequence is walked in tiles of rows that stay in L2, through all of these at once.
///
/// A training step:
///   saved.reset(); for each block: BlockSaved s = block_save(config, sequences, saved);
///   block_forward(config, sequences, parameters, input, output, s, scratch);
///   ... for each block from the last: block_backward(..., s, gradients, scratch);
/// With BlockOutput::statistics of a block handed to the next as BlockInput::statistics, and
/// OutputGradient / BlockGradients::pending likewise backwards, no pass over x is made outside the
/// tiles. Both are optional.
namespace rotrnn::kernels {

/// What forward keeps for backward: nothing (inference), all that is expensive to recompute, or
/// only the states at tile boundaries (backward then recomputes tile by tile).
enum class Keep { nothing, all, boundaries };

/// Sums n doubles over all processes, in place. Empty on one process.
using Reduce = std::function<void(double*, size_t)>;

/// Seconds spent per stage, summed over threads. Backward stages follow the forward ones.
enum class Stage { norm, w, scan, v, activation, glu, count };
struct StageTimes {
  double forward[static_cast<size_t>(Stage::count)] = {};
  double backward[static_cast<size_t>(Stage::count)] = {};
};

/// A layer on whole batches: y from u, and the gradient of u (and of what
/// belongs to the layer) from u and that of y; all [n, D], none of them the
/// same memory. y is without D⊙u + e.
struct SequenceLayer {
  std::function<void(const float* u, float* y)> forward;
  std::function<void(const float* u, const float* dy, float* du)> backward;
};

struct BlockConfig {
  size_t D = 0, S = 0;
  const SequenceLayer* sequence_layer = nullptr;  // in place of z, W and V: S is 0
  Activation activation = Activation::half_glu1;
  Norm norm = Norm::batch;
  bool prenorm = true;
  bool residual = true;  // false: o alone takes the place of x + o
  bool bidirectional = false;
  bool batch_statistics = true;  // false: batch norm is the affine in norm_weight, norm_bias
  Keep keep = Keep::all;
  double eps = 1e-5;
  int threads = 0;       // 0: all that the process may use
  bool balance = false;  // cut unequal sequences too; results then depend on the thread count
  size_t tile = 0;       // rows; 0: default_tile
  Reduce reduce;
  StageTimes* times = nullptr;  // added to, when given
};

/// The bare layer: no norm, activation or residual.
inline BlockConfig bare_layer(size_t D, size_t S, bool bidirectional) {
  BlockConfig config;
  config.D = D;
  config.S = S;
  config.activation = Activation::none;
  config.norm = Norm::none;
  config.residual = false;
  config.bidirectional = bidirectional;
  return config;
}

/// The layer of a block (spec/description.h). lambda_stride: 0 for one λ, else floats from one
/// token's λ to the next. Optional: V_reverse (bidirectional only), D, b, e, start.
struct DiagonalLayer : DiagonalFields<const float*> {
  size_t lambda_stride = 0;
};

struct BlockParameters {
  DiagonalLayer layer;
  const float *value_weight = nullptr, *value_bias = nullptr;  // full_glu, exact_glu only
  const float *gate_weight = nullptr, *gate_bias = nullptr;
  const float *norm_weight = nullptr, *norm_bias = nullptr;  // eval batch norm: a, c
};

/// Optional: masks [sequences, D] (scaled by 1/(1-p)), initial states [sequences, 2S] per
/// direction, statistics of x (BlockOutput::statistics of the block before, not yet reduced).
struct BlockInput {
  const float* x = nullptr;  // [n, D]
  const float *mask1 = nullptr, *mask2 = nullptr;
  const float *initial = nullptr, *initial_reverse = nullptr;
  const double* statistics = nullptr;
};

/// Optional: all but out. final [sequences, 2S]; statistics [1 + 2D]: count, Σ, Σ² of out's
/// columns.
struct BlockOutput {
  float* out = nullptr;  // [n, D], not x
  float *final = nullptr, *final_reverse = nullptr;
  double* statistics = nullptr;
};

/// What forward leaves for backward. mean and variance are those of the batch (running statistics
/// are the caller's); backward may run once.
struct BlockSaved {
  size_t stride = 0;                            // of z
  float* z[2] = {nullptr, nullptr};             // [n, stride] per direction
  float *y = nullptr, *gate = nullptr;          // [n, D], [n, G]; none where o is y itself
  float* raw = nullptr;                         // [n, D], postnorm only
  float* boundary[2] = {nullptr, nullptr};      // [tiles, 2S]
  float* z0[2] = {nullptr, nullptr};            // [sequences, 2S]
  float* first_v[2] = {nullptr, nullptr};       // [sequences, 2S]: W u_1 + b, with start only
  double *mean = nullptr, *variance = nullptr;  // [D]
  float *norm_mean = nullptr, *norm_rstd = nullptr, *norm_a = nullptr, *norm_c = nullptr;  // [D]
  double count = 0;  // tokens that the statistics are over
};

/// Gradient of `out`: value [n, D], or value + q⊙out + s when q is given (pending of the next
/// block).
struct OutputGradient {
  const float* value = nullptr;
  const float* out = nullptr;
  const float *q = nullptr, *s = nullptr;
  const float *final = nullptr, *final_reverse = nullptr;  // [sequences, 2S], optional
};

/// All optional but x; each is overwritten. lambda as λ is: [S], or per token with its stride.
/// pending [2D]: when given and the norm is a prenorm batch norm on batch statistics, x lacks
/// q⊙x + s with q = pending, s = pending + D; otherwise pending is filled with zeros.
struct BlockGradients {
  float* x = nullptr;  // [n, D], not the gradient of out
  float* pending = nullptr;
  DiagonalFields<float*> layer;
  float *value_weight = nullptr, *value_bias = nullptr, *gate_weight = nullptr,
        *gate_bias = nullptr;
  float *norm_weight = nullptr, *norm_bias = nullptr;
  float *initial = nullptr, *initial_reverse = nullptr;
};

/// Rows of a tile for these sizes: its buffers and one panel of weights share L2.
size_t default_tile(const BlockConfig& config);

/// Takes from the arena what forward will keep.
BlockSaved block_save(const BlockConfig& config, const PackedSequences& sequences, Arena& arena);

void block_forward(const BlockConfig& config, const PackedSequences& sequences,
                   const BlockParameters& parameters, const BlockInput& input,
                   const BlockOutput& output, BlockSaved& saved, Arena& scratch);

/// `input` as given to forward. Resets scratch, as forward does.
void block_backward(const BlockConfig& config, const PackedSequences& sequences,
                    const BlockParameters& parameters, const BlockInput& input, BlockSaved& saved,
                    const OutputGradient& gradient, const BlockGradients& gradients,
                    Arena& scratch);

}  // namespace rotrnn::kernels
