#pragma once

#include <cstdint>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace rotrnn::kernels {

/// While it lives, this thread takes numbers below the normal range (1.2e-38 for float) as zero,
/// where the CPU can: a GELU far to the left, or a state that fades, is made of them, and an Intel
/// core is many times slower with them (benchmarks/results/speed.md). What was set before comes
/// back.
class SubnormalsAreZero {
 public:
#if defined(__SSE2__)
  SubnormalsAreZero() : before_(_mm_getcsr()) {
    _mm_setcsr(before_ | kFlushResults | kReadAsZero);
  }
  ~SubnormalsAreZero() {
    _mm_setcsr(before_);
  }
#elif defined(__aarch64__)
  SubnormalsAreZero() {
    __asm__ volatile("mrs %0, fpcr" : "=r"(before_));
    __asm__ volatile("msr fpcr, %0" : : "r"(before_ | kFlush));
  }
  ~SubnormalsAreZero() {
    __asm__ volatile("msr fpcr, %0" : : "r"(before_));
  }
#else
  SubnormalsAreZero() {}
  ~SubnormalsAreZero() {}
#endif
  SubnormalsAreZero(const SubnormalsAreZero&) = delete;
  SubnormalsAreZero& operator=(const SubnormalsAreZero&) = delete;

 private:
#if defined(__SSE2__)
  static constexpr unsigned kFlushResults = 0x8000, kReadAsZero = 0x0040;  // of MXCSR
  unsigned before_;
#elif defined(__aarch64__)
  static constexpr uint64_t kFlush = uint64_t{1} << 24;  // FZ of FPCR
  uint64_t before_;
#endif
};

}  // namespace rotrnn::kernels
