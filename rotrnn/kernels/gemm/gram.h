#pragma once

#include <cstddef>

namespace rotrnn::kernels {

/// Gram matrices of float rows X [n, F], F floats apart. Products are summed in float over short
/// stretches and in double between them. Of `out` the upper triangle is written, and some of the
/// lower. The same bits for any number of threads.

/// out [n, n] = X·Xᵀ.
void gram_of_rows(const float* x, size_t n, size_t F, double* out, int threads);

/// out [F, F] += Xᵀ·X, for rows that come block by block: some hundred at a time.
void add_gram_of_columns(const float* x, size_t n, size_t F, double* out, int threads);

}  // namespace rotrnn::kernels
