#include "rotrnn/kernels/block/activations.h"

#include "rotrnn/kernels/simd/simd.h"

namespace rotrnn::kernels {

void gelu_forward(const float* x, float* y, size_t n, bool exact) {
  table().curve[exact ? Curve::exact_gelu : Curve::gelu](x, y, n);
}

void gelu_backward(const float* x, const float* dy, float* dx, size_t n, bool exact) {
  table().curve_backward[exact ? Curve::exact_gelu : Curve::gelu](x, dy, dx, n);
}

}  // namespace rotrnn::kernels
