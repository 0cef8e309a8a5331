#include "rotrnn/kernels/block/activations.h"

#include "rotrnn/kernels/simd/simd.h"

namespace rotrnn::kernels {

void gelu_forward(const float* x, float* y, size_t n, bool exact) {
  (exact ? table().gelu_exact : table().gelu)(x, y, n);
}

void gelu_backward(const float* x, const float* dy, float* dx, size_t n, bool exact) {
  (exact ? table().gelu_exact_backward : table().gelu_backward)(x, dy, dx, n);
}

}  // namespace rotrnn::kernels
