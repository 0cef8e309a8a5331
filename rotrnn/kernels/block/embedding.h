#pragma once

#include <cstddef>
#include <cstdint>

namespace rotrnn::kernels {

/// out [n, D]: row tokens[t] of weight [vocabulary, D]. Tokens are within the vocabulary.
void embedding_forward(const int64_t* tokens, size_t n, const float* weight, size_t D, float* out,
                       int threads);

/// dweight [vocabulary, D] = Σ over tokens of dout's rows; overwritten. Same bits for any threads.
void embedding_backward(const int64_t* tokens, size_t n, const float* dout, size_t D,
                        size_t vocabulary, float* dweight, int threads);

}  // namespace rotrnn::kernels
