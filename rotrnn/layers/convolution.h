#pragma once

#include <torch/torch.h>

#include "rotrnn/layers/packed.h"

namespace rotrnn {

/// y_t = Σ_{s≤t} K[t-s]·u_s, and with a reverse kernel + Σ_{s>t} K_reverse[s-t-1]·u_s, channel by
/// channel along every sequence of a packed batch, by FFT. u [tokens, D]; the kernels are [D, L],
/// L at least the longest sequence (a shorter one uses their beginning), or undefined.
///
/// `fast`: float32 on the CPU may take the kernel (kernels/convolve.h).
/// Differentiable once; spectra are computed again for the gradients instead of kept: for a batch
/// of n tokens they would be 4·n·D complex numbers.
torch::Tensor convolve(const Packed& u, const torch::Tensor& K, const torch::Tensor& K_reverse,
                       bool fast = false);

}  // namespace rotrnn
