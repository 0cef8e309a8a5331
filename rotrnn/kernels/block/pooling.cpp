#include "rotrnn/kernels/block/pooling.h"

#include <algorithm>
#include <vector>

#include "rotrnn/base/threads.h"
#include "rotrnn/kernels/simd/simd.h"

namespace rotrnn::kernels {
namespace {

/// Runs f(sequence, begin, end) with every sequence's tokens cut into `threads` stretches.
template <class F>
void for_stretches(const PackedSequences& sequences, int threads, const F& f) {
  const auto many = static_cast<size_t>(threads);
  parallel_for(threads, [&](int t) {
    const auto index = static_cast<size_t>(t);
    for (size_t i = 0; i < sequences.count; ++i) {
      const size_t begin = sequences.begin(i), length = sequences.end(i) - begin;
      f(i, begin + length * index / many, begin + length * (index + 1) / many);
    }
  });
}

}  // namespace

void pool_mean(const PackedSequences& sequences, const float* x, size_t D, float* out,
               int threads) {
  constexpr size_t kRows = 128;
  // Parts of a sequence: a number that the threads do not change, so that the bits do not either.
  const size_t parts = sequences.count > 8 ? 1 : 8;
  std::vector<double> sums(sequences.count * parts * D, 0.0);
  parallel_for(threads, [&](int t) {
    for (size_t task = static_cast<size_t>(t); task < sequences.count * parts;
         task += static_cast<size_t>(threads)) {
      const size_t i = task / parts, part = task % parts;
      const size_t begin = sequences.begin(i), length = sequences.end(i) - begin;
      const size_t stop = begin + length * (part + 1) / parts;
      for (size_t at = begin + length * part / parts; at < stop; at += kRows) {
        table().column_sum(x + at * D, D, std::min(kRows, stop - at), D, sums.data() + task * D);
      }
    }
  });
  for (size_t i = 0; i < sequences.count; ++i) {
    const auto length = static_cast<double>(sequences.end(i) - sequences.begin(i));
    for (size_t c = 0; c < D; ++c) {
      double sum = 0;
      for (size_t part = 0; part < parts; ++part) sum += sums[(i * parts + part) * D + c];
      out[i * D + c] = length > 0 ? static_cast<float>(sum / length) : 0.0f;
    }
  }
}

void pool_mean_backward(const PackedSequences& sequences, const float* dout, size_t D, float* dx,
                        int threads) {
  for_stretches(sequences, threads, [&](size_t i, size_t begin, size_t end) {
    if (begin == end) return;
    const float scale = 1.0f / static_cast<float>(sequences.end(i) - sequences.begin(i));
    float* first = dx + begin * D;
    for (size_t c = 0; c < D; ++c) first[c] = dout[i * D + c] * scale;
    for (size_t t = begin + 1; t < end; ++t) std::copy_n(first, D, dx + t * D);
  });
}

void pool_last(const PackedSequences& sequences, const float* x, size_t D, float* out) {
  for (size_t i = 0; i < sequences.count; ++i) {
    if (sequences.begin(i) == sequences.end(i)) {
      std::fill_n(out + i * D, D, 0.0f);
    } else {
      std::copy_n(x + (sequences.end(i) - 1) * D, D, out + i * D);
    }
  }
}

void pool_last_backward(const PackedSequences& sequences, const float* dout, size_t D, float* dx,
                        int threads) {
  for_stretches(sequences, threads, [&](size_t i, size_t begin, size_t end) {
    std::fill(dx + begin * D, dx + end * D, 0.0f);
    if (begin < end && end == sequences.end(i)) std::copy_n(dout + i * D, D, dx + (end - 1) * D);
  });
}

}  // namespace rotrnn::kernels
