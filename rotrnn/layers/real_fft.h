#pragma once

#include <torch/torch.h>

namespace rotrnn {

/// torch::fft_irfft of rows [.., n/2 + 1], differentiable once. On the CPU
/// LibTorch's FFT runs on one thread: here the rows are shared by its threads.
torch::Tensor inverse_real_fft(const torch::Tensor& spectrum, int64_t n);

}  // namespace rotrnn
