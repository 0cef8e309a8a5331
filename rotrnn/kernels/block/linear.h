#pragma once

#include <cstddef>

namespace rotrnn::kernels {

/// The encoder of real channels: out [n, D] = x [n, channels]·weightᵀ + bias, weight [D, channels].
/// For few channels, where a packed product would not pay.
void linear_forward(const float* x, size_t n, size_t channels, const float* weight,
                    const float* bias, size_t D, float* out, int threads);

/// dweight and dbias, overwritten; dx [n, channels] when not null. Same bits for any threads.
void linear_backward(const float* x, size_t n, size_t channels, const float* weight, size_t D,
                     const float* dout, float* dweight, float* dbias, float* dx, int threads);

}  // namespace rotrnn::kernels
