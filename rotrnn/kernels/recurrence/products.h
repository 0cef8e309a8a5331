#pragma once

#include <cstddef>

#include "rotrnn/base/arena.h"
#include "rotrnn/kernels/block/plan.h"

/// Products of neighbouring inputs, as Liquid-S4 adds them, channel by channel:
///
///   y_t += Σ_{p=2..orders+1} c_p ⊙ Π_{j<p} u_{t-j}        u is 0 before a sequence
namespace rotrnn::kernels {

/// u and y [n, D], c [orders, D].
void products_forward(int threads, const PackedSequences& sequences, size_t D, size_t orders,
                      const float* c, const float* u, float* y);

/// Adds to du; overwrites dc, unless it is null. Resets scratch. Sums over
/// tokens are in double over stretches of a fixed number of rows, so they do
/// not depend on the threads.
void products_backward(int threads, const PackedSequences& sequences, size_t D, size_t orders,
                       const float* c, const float* u, const float* dy, float* du, float* dc,
                       Arena& scratch);

/// The same of other products, those that the authors' code takes: of the p-combinations of the
/// last w inputs of a sequence of T tokens, in lexicographic order, the last T, w < T being the
/// smallest number that has as many; y_t gets the t-th of them from the end. Not causal.
/// std::invalid_argument when a sequence is too short to have them.
void reference_products_forward(int threads, const PackedSequences& sequences, size_t D,
                                size_t orders, const float* c, const float* u, float* y);

/// What is thrown then; of a product of `factors` inputs.
[[noreturn]] void refuse_short_sequence(size_t tokens, size_t factors);

/// As products_backward. Many products meet in one input: their sums are in double, one thread for
/// some channels of a sequence.
void reference_products_backward(int threads, const PackedSequences& sequences, size_t D,
                                 size_t orders, const float* c, const float* u, const float* dy,
                                 float* du, float* dc, Arena& scratch);

}  // namespace rotrnn::kernels
