#include "rotrnn/kernels/products.h"

#include <algorithm>
#include <atomic>
#include <vector>

#include "rotrnn/kernels/threads.h"

namespace rotrnn::kernels {
namespace {

// Rows that go together: a few KB a row, so that the rows before them are still
// in L1.
constexpr size_t kRows = 64;

/// Some rows of one sequence.
struct Stretch {
  size_t first, end;   // of the sequence
  size_t begin, rows;  // of the stretch
};

std::vector<Stretch> stretches_of(const Sequences& sequences) {
  std::vector<Stretch> out;
  for (size_t i = 0; i < sequences.count; ++i) {
    const size_t first = sequences.begin(i), end = sequences.end(i);
    for (size_t at = first; at < end; at += kRows) {
      out.push_back({first, end, at, std::min(kRows, end - at)});
    }
  }
  return out;
}

/// f(stretch, its number, thread) on any thread.
template <class F>
void for_stretches(int threads, const std::vector<Stretch>& stretches, const F& f) {
  std::atomic<size_t> next{0};
  parallel_for(threads, [&](int thread) {
    for (size_t i; (i = next++) < stretches.size();) {
      f(stretches[i], i, static_cast<size_t>(thread));
    }
  });
}

}  // namespace

void products_forward(int threads, const Sequences& sequences, size_t D, size_t orders,
                      const float* c, const float* u, float* y) {
  threads = threads > 0 ? threads : available_threads();
  std::vector<float> products(static_cast<size_t>(threads) * D);
  for_stretches(threads, stretches_of(sequences), [&](const Stretch& s, size_t, size_t thread) {
    float* product = products.data() + thread * D;
    for (size_t t = s.begin; t < s.begin + s.rows; ++t) {
      const size_t most = std::min(orders, t - s.first);  // later ones meet the zeros
      std::copy_n(u + t * D, D, product);
      for (size_t p = 1; p <= most; ++p) {
        const float *before = u + (t - p) * D, *scale = c + (p - 1) * D;
        float* out = y + t * D;
        for (size_t d = 0; d < D; ++d) {
          product[d] *= before[d];
          out[d] += scale[d] * product[d];
        }
      }
    }
  });
}

void products_backward(int threads, const Sequences& sequences, size_t D, size_t orders,
                       const float* c, const float* u, const float* dy, float* du, float* dc,
                       Arena& scratch) {
  threads = threads > 0 ? threads : available_threads();
  scratch.reset();
  const std::vector<Stretch> stretches = stretches_of(sequences);
  const size_t size = orders * D;
  auto* sums = scratch.take<double>(dc != nullptr ? stretches.size() * size : 0);
  auto* rows = scratch.take<float>(static_cast<size_t>(threads) * (D + size));
  for_stretches(threads, stretches, [&](const Stretch& s, size_t number, size_t thread) {
    float *product = rows + thread * (D + size), *sum = product + D;
    std::fill_n(sum, size, 0.0f);
    for (size_t t = s.begin; t < s.begin + s.rows; ++t) {
      const size_t most = std::min(orders, t - s.first);
      std::copy_n(u + t * D, D, product);
      for (size_t p = 1; p <= most && dc != nullptr; ++p) {
        const float *before = u + (t - p) * D, *gradient = dy + t * D;
        float* to = sum + (p - 1) * D;
        for (size_t d = 0; d < D; ++d) {
          product[d] *= before[d];
          to[d] += gradient[d] * product[d];
        }
      }
      // u_t is the j-th of the inputs of the product at t + j: the others,
      // times what it has.
      for (size_t p = 1; p <= orders; ++p) {
        for (size_t j = 0; j <= p; ++j) {
          const size_t at = t + j;
          if (at >= s.end || at < s.first + p) continue;
          const float *scale = c + (p - 1) * D, *gradient = dy + at * D;
          for (size_t d = 0; d < D; ++d) product[d] = scale[d] * gradient[d];
          for (size_t i = 0; i <= p; ++i) {
            if (i == j) continue;
            const float* other = u + (at - i) * D;
            for (size_t d = 0; d < D; ++d) product[d] *= other[d];
          }
          float* to = du + t * D;
          for (size_t d = 0; d < D; ++d) to[d] += product[d];
        }
      }
    }
    if (dc != nullptr) std::copy_n(sum, size, sums + number * size);
  });
  if (dc == nullptr) return;
  for (size_t i = 0; i < size; ++i) {
    double total = 0;
    for (size_t s = 0; s < stretches.size(); ++s) total += sums[s * size + i];
    dc[i] = static_cast<float>(total);
  }
}

}  // namespace rotrnn::kernels
