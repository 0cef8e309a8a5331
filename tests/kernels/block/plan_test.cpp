#include "rotrnn/kernels/block/plan.h"

#include "rotrnn/base/arena.h"
#include "rotrnn/base/threads.h"
#include "tests/kernels/test_util.h"

namespace rotrnn::kernels::testing {
namespace {

std::vector<int64_t> offsets_of(const std::vector<int>& lengths) {
  std::vector<int64_t> offsets{0};
  for (int length : lengths) offsets.push_back(offsets.back() + length);
  return offsets;
}

/// Every token in exactly one segment; every unit on exactly one thread.
void expect_covers(const Plan& plan, size_t n) {
  std::vector<int> seen(n), units(plan.units.size());
  for (const auto& unit : plan.units) {
    for (const Segment& s : unit) {
      for (size_t t = s.begin; t < s.end; ++t) ++seen[t];
    }
  }
  for (const auto& mine : plan.units_of_thread) {
    for (size_t unit : mine) ++units[unit];
  }
  for (int count : seen) ASSERT_EQ(count, 1);
  for (int count : units) ASSERT_EQ(count, 1);
}

TEST(Plan, CoversEveryTokenOnce) {
  for (const std::vector<int>& lengths :
       {std::vector<int>{}, {0}, {1}, {1000}, {5, 0, 7}, {4000, 10, 10, 10}, {300, 200, 100, 1}}) {
    const auto offsets = offsets_of(lengths);
    for (int threads : {1, 2, 3, 4, 16}) {
      for (bool balance : {false, true}) {
        const PackedSequences s{offsets.data(), lengths.size()};
        expect_covers(make_plan(s, 16, threads, balance), s.tokens());
      }
    }
  }
}

TEST(Plan, UnitsDoNotDependOnThreads) {
  const auto offsets = offsets_of({300, 200, 100, 1, 50, 60});
  const PackedSequences s{offsets.data(), 6};
  const Plan one = make_plan(s, 16, 1, false);
  for (int threads : {2, 3, 6}) {
    const Plan many = make_plan(s, 16, threads, false);
    ASSERT_EQ(one.units.size(), many.units.size());
    for (size_t u = 0; u < one.units.size(); ++u) {
      ASSERT_EQ(one.units[u].size(), many.units[u].size());
      for (size_t i = 0; i < one.units[u].size(); ++i) {
        EXPECT_EQ(one.units[u][i].sequence, many.units[u][i].sequence);
      }
    }
  }
}

TEST(Plan, CutsWhenSequencesAreFewOrUnequal) {
  const auto single = offsets_of({1000});
  EXPECT_TRUE(make_plan({single.data(), 1}, 16, 2, false).chunked);
  EXPECT_FALSE(make_plan({single.data(), 1}, 16, 1, false).chunked);
  const auto unequal = offsets_of({4000, 10, 10, 10});
  EXPECT_FALSE(make_plan({unequal.data(), 4}, 16, 2, false).chunked);
  EXPECT_TRUE(make_plan({unequal.data(), 4}, 16, 2, true).chunked);
}

TEST(Arena, KeepsItsMemory) {
  Arena arena;
  float* a = arena.take<float>(100000);
  a[99999] = 1;
  arena.take<double>(300000)[0] = 2;
  EXPECT_EQ(reinterpret_cast<uintptr_t>(a) % 64, 0u);
  arena.reset();
  const size_t bytes = arena.capacity();
  arena.take<float>(100000);
  arena.take<double>(300000)[299999] = 3;
  EXPECT_EQ(arena.capacity(), bytes);
}

TEST(Threads, EveryIndexOnce) {
  EXPECT_GE(available_threads(), 1);
  for (int threads : {1, 2, 7}) {
    std::vector<int> seen(static_cast<size_t>(threads));
    parallel_for(threads, [&](int t) { ++seen[static_cast<size_t>(t)]; });
    for (int count : seen) EXPECT_EQ(count, 1);
  }
}

}  // namespace
}  // namespace rotrnn::kernels::testing
