#pragma once

#include <cstddef>
#include <cstdint>

#include "rotrnn/kernels/block/plan.h"

namespace rotrnn::kernels {

/// Tokens of `size` consecutive samples, `stride` samples apart.
struct Patches {
  size_t channels = 1, size = 1, stride = 1;

  size_t outputs() const { return channels * size; }
};

/// Tokens [n, size·channels] of packed samples [m, channels]; `tokens` are their offsets. The token
/// of a sequence that is shorter than a patch ends in zeros.
void patches_forward(const Patches& patches, const PackedSequences& sequences,
                     const int64_t* tokens, const float* x, float* out, int threads);

/// dx [m, channels], overwritten.
void patches_backward(const Patches& patches, const PackedSequences& sequences,
                      const int64_t* tokens, const float* dtokens, float* dx, int threads);

}  // namespace rotrnn::kernels
