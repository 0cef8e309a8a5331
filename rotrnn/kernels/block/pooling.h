#pragma once

#include "rotrnn/kernels/block/plan.h"

namespace rotrnn::kernels {

/// Segment pooling of x [n, D] to [sequences, D]. An empty sequence pools to zero.
void pool_mean(const PackedSequences& sequences, const float* x, size_t D, float* out, int threads);
void pool_mean_backward(const PackedSequences& sequences, const float* dout, size_t D, float* dx,
                        int threads);

/// The last token of each sequence.
void pool_last(const PackedSequences& sequences, const float* x, size_t D, float* out);
void pool_last_backward(const PackedSequences& sequences, const float* dout, size_t D, float* dx,
                        int threads);

}  // namespace rotrnn::kernels
