#include "rotrnn/cli/bench/read_bandwidth.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <vector>

namespace rotrnn::cli {
namespace {

// The or of all words, in eight sums so that no addition waits for the one before. Always inlined:
// the instructions are those of the caller's target.
template <typename Vector>
[[gnu::always_inline]] inline uint64_t read_all(const uint64_t* words, size_t count) {
  constexpr size_t kWords = sizeof(Vector) / sizeof(uint64_t), kSums = 8;
  Vector sums[kSums] = {};
  const auto* at = reinterpret_cast<const Vector*>(words);
  for (size_t i = 0; i + kSums <= count / kWords; i += kSums) {
    for (size_t k = 0; k < kSums; ++k) sums[k] |= at[i + k];
  }
  for (size_t k = 1; k < kSums; ++k) sums[0] |= sums[k];
  return sums[0][0];
}

using Vector16 = uint64_t __attribute__((vector_size(16), may_alias));
using Vector32 = uint64_t __attribute__((vector_size(32), may_alias));

uint64_t read_plain(const uint64_t* words, size_t count) {
  return read_all<Vector16>(words, count);
}

#if defined(__x86_64__)
[[gnu::target("avx2")]] uint64_t read_avx2(const uint64_t* words, size_t count) {
  return read_all<Vector32>(words, count);
}
#endif

using Read = uint64_t (*)(const uint64_t*, size_t);

Read best_read() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) return read_avx2;
#endif
  return read_plain;
}

}  // namespace

double read_bandwidth(size_t bytes) {
  using Clock = std::chrono::steady_clock;
  constexpr size_t kAlign = 64 / sizeof(uint64_t);
  const size_t count = std::max<size_t>(bytes / sizeof(uint64_t), 64);
  std::vector<uint64_t> buffer(count + kAlign, 1);
  const uint64_t* words = buffer.data();
  while (reinterpret_cast<uintptr_t>(words) % 64 != 0) ++words;
  const Read read = best_read();
  volatile uint64_t seen = read(words, count);
  const size_t times = std::max<size_t>(1, (size_t{1} << 26) / (count * sizeof(uint64_t)));
  double best = 0;
  for (int trial = 0; trial < 15; ++trial) {
    const auto begin = Clock::now();
    for (size_t i = 0; i < times; ++i) seen = read(words, count);
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    best = std::max(best, static_cast<double>(times * count * sizeof(uint64_t)) / seconds);
  }
  static_cast<void>(seen);
  return best;
}

}  // namespace rotrnn::cli
