// Compiled twice: with the threads of OpenMP and with the pool of std::thread.
#include "rotrnn/base/subnormals.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>

#include "rotrnn/base/threads.h"

namespace rotrnn::kernels {
namespace {

// A product below the normal range, and a product above it of a factor below.
std::array<float, 2> products() {
  volatile float small = 0x1p-65f, tiny = 0x1p-130f, large = 0x1p20f;
  return {small * small, tiny * large};
}

constexpr std::array<float, 2> kKept{0x1p-130f, 0x1p-110f}, kZero{0, 0};

TEST(Subnormals, AreZeroInBodiesAndWhatWasBeforeComesBack) {
#if !defined(__SSE2__) && !defined(__aarch64__)
  GTEST_SKIP() << "this CPU has no such mode";
#endif
  ASSERT_EQ(products(), kKept);
  for (const int threads : {1, 2, 5}) {
    std::array<std::array<float, 2>, 5> seen, after_nested;
    parallel_for(threads, [&](int thread) {
      const auto t = static_cast<size_t>(thread);
      seen[t] = products();
      parallel_for(2, [](int) {});
      after_nested[t] = products();
    });
    for (size_t t = 0; t < static_cast<size_t>(threads); ++t) {
      EXPECT_EQ(seen[t], kZero) << t << " of " << threads;
      EXPECT_EQ(after_nested[t], kZero) << t << " of " << threads;
    }
    EXPECT_EQ(products(), kKept) << threads;
  }
  {
    const SubnormalsAreZero zero;  // as a caller may have chosen for itself
    parallel_for(2, [](int) {});
    EXPECT_EQ(products(), kZero);
  }
  EXPECT_EQ(products(), kKept);
}

}  // namespace
}  // namespace rotrnn::kernels
