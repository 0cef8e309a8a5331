#pragma once

#include <cstddef>

#include "rotrnn/base/arena.h"
#include "rotrnn/kernels/block/plan.h"

/// Convolutions along time on packed ragged batches, every channel with a kernel of its own:
///
///   y_{t,d} = Σ_{s≤t} K_{t-s,d}·u_{s,d}    and with K_reverse  + Σ_{s>t}
///   K_reverse_{s-t-1,d}·u_{s,d}
///
/// by FFTs of about twice the length, a vector of channels at once. Two sequences of about the same
/// length are the real and the imaginary part of one: K is real, so they stay apart in the result.
/// Backward keeps nothing from forward.
///
/// Threads share channels (and, where those are few, parts of the batch); sums are over parts in
/// order, so the bits are the same for any number of threads.
namespace rotrnn::kernels {

/// K and K_reverse [length, D], row-major; the latter may be null. A sequence uses their beginning,
/// so `length` is at least that of the longest one.
struct ConvolutionKernels {
  size_t D = 0, length = 0;
  const float *K = nullptr, *K_reverse = nullptr;
};

/// y [n, D] from u [n, D], not in place; or added to y. Resets scratch, as backward does.
void convolve_forward(int threads, const PackedSequences& sequences,
                      const ConvolutionKernels& kernels, const float* u, float* y, bool add,
                      Arena& scratch);

/// Laid out like what they are the gradients of; overwritten, or added to (`add`, of u alone). K
/// and K_reverse are optional.
struct ConvolutionGradients {
  float* u = nullptr;  // not the gradient of y
  bool add = false;
  float *K = nullptr, *K_reverse = nullptr;
};

void convolve_backward(int threads, const PackedSequences& sequences,
                       const ConvolutionKernels& kernels, const float* u, const float* dy,
                       const ConvolutionGradients& gradients, Arena& scratch);

}  // namespace rotrnn::kernels
