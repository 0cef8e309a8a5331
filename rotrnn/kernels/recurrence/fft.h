#pragma once

#include <cstddef>

#include "rotrnn/kernels/simd/simd.h"

namespace rotrnn::kernels {

/// The size ≥ least that transforms fastest, of a few between powers of two: a power of two times
/// 1, 3, 5, 9, 15, 25 or 27.
size_t fft_size(size_t least);

/// The plan of a size that fft_size gave. Made once for the process, at any thread's call.
const FftPlan& fft_plan(size_t n);

}  // namespace rotrnn::kernels
