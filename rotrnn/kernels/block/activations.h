#pragma once

#include <cstddef>

namespace rotrnn::kernels {

/// The branch after the layer, fused into the block (tile kernels in simd.h):
///   full_glu    h = drop(gelu(y));  o = drop(W1 h ⊙ σ(W2 h))
///   exact_glu   h = drop(gelu(y));  o = W1 h ⊙ σ(W2 h)
///   half_glu1   h = drop(gelu(y));  o = drop(h ⊙ σ(W2 h))
///   half_glu2   h = drop(gelu(y));  o = drop(y ⊙ σ(W2 h))
///   gelu        o = drop(gelu(y))
///   none        o = drop(y)
/// W1 and W2 have biases; drop multiplies by a mask per sequence and channel. Curves are in
/// spec/kinds.h.
/// GELU is the tanh form, computed as y·σ(2·sqrt(2/π)(y + 0.044715·y³)): one exponential; that of
/// exact_glu is y·Φ(y), Φ the normal distribution.

void gelu_forward(const float* x, float* y, size_t n, bool exact = false);
void gelu_backward(const float* x, const float* dy, float* dx, size_t n, bool exact = false);

}  // namespace rotrnn::kernels
