#pragma once

#include "rotrnn/kernels/simd/simd.h"

namespace rotrnn::kernels {

// One function per targets/*.cpp; "none" files stand in for what the compiler or machine lacks.
const Table* table_avx512();
const Table* table_avx2();
const Table* table_baseline();  // SSE2 on x86-64, NEON on ARM: what every CPU of the kind has
const Table* table_scalar();

}  // namespace rotrnn::kernels
