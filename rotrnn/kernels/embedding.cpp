#include "rotrnn/kernels/embedding.h"

#include <algorithm>
#include <vector>

#include "rotrnn/kernels/simd.h"
#include "rotrnn/kernels/threads.h"

namespace rotrnn::kernels {

void embedding_forward(const int64_t* tokens, size_t n, const float* weight, size_t D, float* out,
                       int threads) {
  parallel_for(threads, [&](int t) {
    const auto index = static_cast<size_t>(t), many = static_cast<size_t>(threads);
    for (size_t i = n * index / many; i < n * (index + 1) / many; ++i) {
      std::copy_n(weight + static_cast<size_t>(tokens[i]) * D, D, out + i * D);
    }
  });
}

// Float sums over blocks of tokens, added up in double: a token may come 100,000 times in a batch.
// The number of parts is fixed, so that the order of sums does not depend on the threads.
void embedding_backward(const int64_t* tokens, size_t n, const float* dout, size_t D,
                        size_t vocabulary, float* dweight, int threads) {
  const size_t size = vocabulary * D;
  // Copies of a large table would cost more than the sums: one part then.
  const size_t parts = size == 0 ? 0 : std::clamp<size_t>(n * D / (4 * size), 1, 16);
  constexpr size_t kBlock = 1024;
  std::vector<double> sums(parts * size, 0.0);
  std::vector<float> blocks(parts * size, 0.0f);
  parallel_for(threads, [&](int t) {
    std::vector<char> touched(vocabulary, 0);
    for (size_t p = static_cast<size_t>(t); p < parts; p += static_cast<size_t>(threads)) {
      float* block = blocks.data() + p * size;
      const size_t end = n * (p + 1) / parts;
      for (size_t at = n * p / parts; at < end; at += kBlock) {
        for (size_t i = at; i < std::min(end, at + kBlock); ++i) {
          const auto token = static_cast<size_t>(tokens[i]);
          touched[token] = 1;
          table().axpy(block + token * D, dout + i * D, 1.0f, D);
        }
        for (size_t token = 0; token < vocabulary; ++token) {
          if (touched[token] == 0) continue;
          touched[token] = 0;
          for (size_t c = token * D; c < (token + 1) * D; ++c) {
            sums[p * size + c] += static_cast<double>(block[c]);
            block[c] = 0;
          }
        }
      }
    }
  });
  for (size_t c = 0; c < size; ++c) {
    double sum = 0;
    for (size_t p = 0; p < parts; ++p) sum += sums[p * size + c];
    dweight[c] = static_cast<float>(sum);
  }
}

}  // namespace rotrnn::kernels
