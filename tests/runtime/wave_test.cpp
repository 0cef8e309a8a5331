#include "rotrnn/runtime/wave.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>

namespace rotrnn::runtime {
namespace {

TEST(Wave, EveryStageOfEveryItemOnceAndInOrder) {
  for (const int threads : {1, 2, 3, 7}) {
    for (const size_t stages : {1, 2, 5}) {
      for (const size_t items : {0, 1, 2, 60}) {
        for (const size_t slots : {1, 3, 100}) {
          // How many stages an item has gone through; items at work.
          auto through = std::make_unique<std::atomic<size_t>[]>(items + 1);
          std::atomic<size_t> total{0}, inside{0}, wrong{0}, most{0};
          run_wave(threads, stages, items, slots, [&](size_t s, size_t i, size_t t) {
            if (s == 0) most = std::max<size_t>(most, ++inside);
            if (through[i] != s || (i > 0 && through[i - 1] <= s)) ++wrong;
            if (t >= static_cast<size_t>(threads)) ++wrong;
            if ((i + s) % 3 == 0) std::this_thread::yield();
            if (s + 1 == stages) --inside;
            through[i] = s + 1;
            ++total;
          });
          EXPECT_EQ(total, stages * items);
          EXPECT_EQ(wrong, 0);
          EXPECT_LE(most, slots + 1);  // one leaves while the next enters
        }
      }
    }
  }
}

}  // namespace
}  // namespace rotrnn::runtime
