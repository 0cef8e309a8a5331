#pragma once

#include <cstddef>

namespace rotrnn::kernels {

/// Norms of a packed batch [n, D] on their own, as after the last block; inside a block they are
/// fused. Sums over tokens: float about the first row within 128 rows, double between.

/// statistics [1 + 2D]: n, Σ and Σ² per column.
void batch_statistics(const float* x, size_t n, size_t D, double* statistics, int threads);

/// out = a⊙x + c per column.
void affine_forward(const float* x, const float* a, const float* c, float* out, size_t n, size_t D,
                    int threads);

void layer_norm_forward(const float* x, const float* weight, const float* bias, float eps,
                        float* out, size_t n, size_t D, int threads);

/// dx, and the gradients of weight and bias.
void layer_norm_backward(const float* x, const float* weight, float eps, const float* dout,
                         float* dx, float* dweight, float* dbias, size_t n, size_t D, int threads);

}  // namespace rotrnn::kernels
