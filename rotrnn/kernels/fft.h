#pragma once

#include <cstddef>

#include "rotrnn/kernels/arena.h"
#include "rotrnn/kernels/simd.h"

namespace rotrnn::kernels {

/// The size ≥ least that transforms fastest: no primes but 2, 3 and 5.
size_t fft_size(size_t least);

/// The plan of a size that fft_size gave; it lives in the arena.
FftPlan make_fft_plan(size_t n, Arena& arena);

}  // namespace rotrnn::kernels
