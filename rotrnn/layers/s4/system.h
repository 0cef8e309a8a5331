#pragma once

#include <vector>

#include "rotrnn/layers/layer.h"
#include "rotrnn/layers/state_space/dplr.h"

/// What S4 and Liquid-S4 share.
namespace rotrnn {

/// The values as numbers of every channel.
struct S4System {
  DplrMatrix dplr;
  DplrVectors vectors;  // B; C̃ and, when bidirectional, that of the reverse direction; those pairs
  int64_t length = 0;
};
S4System s4_system(const LayerOptions& options, const LayerValues& values);

/// The adjoint: adds to the gradients of the parameters but D.
void s4_system_backward(const LayerOptions& options, const S4System& system, const DplrMatrix& dplr,
                        const DplrVectors& vectors, const Views<double>& out);

/// L; std::runtime_error for a length that no S4 layer has.
int64_t s4_length(const LayerValues& values);

/// As draw_s4; `clip`: of Im B, to ±2.
void draw_s4_values(const LayerOptions& options, uint64_t seed, uint64_t stream,
                    const LayerValues& out, bool clip);

/// The channel that a description is, or is made to be, with L, D and kernels of their sizes.
Channel<double>& s4_channel(const LayerOptions& options, const LayerValues& values,
                            Description<double>& out);

/// Where the first pairs of `vectors` put their kernels, and where the gradients of them are.
std::vector<DplrKernel> s4_kernels(Channel<double>& channel);
std::vector<DplrKernelGradient> s4_kernel_gradients(const Channel<double>& gradient);

/// Vectors of the same sizes, all 0.
DplrVectors zero_vectors(const DplrVectors& like);

}  // namespace rotrnn
