#include "rotrnn/kernels/block/embedding.h"

#include <algorithm>
#include <vector>

#include "rotrnn/base/threads.h"
#include "rotrnn/kernels/simd/simd.h"

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

// Threads over columns: each sum has one owner, so its order never changes. Sums of 512 tokens are
// formed apart and added in, since a token may come 100,000 times in a batch.
void embedding_backward(const int64_t* tokens, size_t n, const float* dout, size_t D,
                        size_t vocabulary, float* dweight, int threads) {
  constexpr size_t kBlock = 512;
  parallel_for(threads, [&](int t) {
    const auto index = static_cast<size_t>(t), many = static_cast<size_t>(threads);
    const size_t left = D * index / many, width = D * (index + 1) / many - left;
    std::vector<size_t> slot_of(vocabulary, kBlock), token_of;
    std::vector<float> sums(kBlock * width, 0.0f);
    for (size_t token = 0; token < vocabulary; ++token) {
      std::fill_n(dweight + token * D + left, width, 0.0f);
    }
    for (size_t at = 0; at < n; at += kBlock) {
      for (size_t i = at; i < std::min(n, at + kBlock); ++i) {
        size_t& slot = slot_of[static_cast<size_t>(tokens[i])];
        if (slot == kBlock) {
          slot = token_of.size();
          token_of.push_back(static_cast<size_t>(tokens[i]));
        }
        table().axpy(sums.data() + slot * width, dout + i * D + left, 1.0f, width);
      }
      for (size_t slot = 0; slot < token_of.size(); ++slot) {
        table().axpy(dweight + token_of[slot] * D + left, sums.data() + slot * width, 1.0f, width);
        slot_of[token_of[slot]] = kBlock;
      }
      std::fill_n(sums.data(), token_of.size() * width, 0.0f);
      token_of.clear();
    }
  });
}

}  // namespace rotrnn::kernels
