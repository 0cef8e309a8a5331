#pragma once

#include <cstddef>

namespace rotrnn::kernels {

/// A product with a bias on its own, as in a head: out [n, N] = x [n, K]·weightᵀ + bias, weight
/// [N, K]. Inside a block such products are fused.
struct Dense {
  size_t K = 0, N = 0;
  const float *weight = nullptr, *bias = nullptr;
};

void dense_forward(const Dense& dense, const float* x, size_t n, float* out, int threads);

/// dweight and dbias, overwritten; dx [n, K] when it is not null. Rows are summed in groups that do
/// not depend on the threads, so the bits do not either.
void dense_backward(const Dense& dense, const float* x, size_t n, const float* dout, float* dweight,
                    float* dbias, float* dx, int threads);

}  // namespace rotrnn::kernels
