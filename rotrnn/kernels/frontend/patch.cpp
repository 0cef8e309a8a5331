#include "rotrnn/kernels/frontend/patch.h"

#include <algorithm>

#include "rotrnn/base/threads.h"

namespace rotrnn::kernels {
namespace {

// Calls body(first number of x, numbers, first number of the tokens) for each token of the
// sequences of one thread.
template <class F>
void for_patches(const Patches& p, const PackedSequences& sequences, const int64_t* tokens,
                 size_t thread, size_t threads, const F& body) {
  for (size_t i = thread; i < sequences.count; i += threads) {
    const auto first = static_cast<size_t>(tokens[i]), last = static_cast<size_t>(tokens[i + 1]);
    const size_t begin = sequences.begin(i), length = sequences.end(i) - begin;
    for (size_t j = first; j < last; ++j) {
      body((begin + (j - first) * p.stride) * p.channels, std::min(p.size, length) * p.channels,
           j * p.outputs());
    }
  }
}

}  // namespace

void patches_forward(const Patches& p, const PackedSequences& sequences, const int64_t* tokens,
                     const float* x, float* out, int threads) {
  parallel_for(threads, [&](int t) {
    for_patches(p, sequences, tokens, static_cast<size_t>(t), static_cast<size_t>(threads),
                [&](size_t from, size_t count, size_t to) {
                  std::copy_n(x + from, count, out + to);
                  std::fill_n(out + to + count, p.outputs() - count, 0.0f);
                });
  });
}

void patches_backward(const Patches& p, const PackedSequences& sequences, const int64_t* tokens,
                      const float* dtokens, float* dx, int threads) {
  parallel_for(threads, [&](int t) {
    const auto thread = static_cast<size_t>(t), many = static_cast<size_t>(threads);
    for (size_t i = thread; i < sequences.count; i += many) {
      std::fill(dx + sequences.begin(i) * p.channels, dx + sequences.end(i) * p.channels, 0.0f);
    }
    for_patches(p, sequences, tokens, thread, many, [&](size_t from, size_t count, size_t to) {
      for (size_t k = 0; k < count; ++k) dx[from + k] += dtokens[to + k];
    });
  });
}

}  // namespace rotrnn::kernels
