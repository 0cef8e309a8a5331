#include "rotrnn/distributed/cpus.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <set>
#include <thread>

namespace rotrnn {
namespace {

// Two packages of two cores of two CPUs, numbered as Linux does: the second of each core last.
std::vector<Cpu> machine() {
  return {{0, 0, 0}, {1, 0, 1}, {2, 1, 0}, {3, 1, 1}, {4, 0, 0}, {5, 0, 1}, {6, 1, 0}, {7, 1, 1}};
}

std::string part(int rank, int size) {
  return cpu_list(cpus_of(machine(), {rank, size}));
}

TEST(Cpus, ArePartedByPackagesAndCores) {
  EXPECT_EQ(part(0, 2), "0,4,1,5");
  EXPECT_EQ(part(1, 2), "2,6,3,7");
  EXPECT_EQ(part(2, 4), "2,6");
  EXPECT_EQ(part(7, 8), "7");
}

TEST(Cpus, AreAllUsedOnceByAnyNumberOfProcesses) {
  for (int size = 1; size <= 8; ++size) {
    std::set<int> seen;
    size_t total = 0;
    for (int rank = 0; rank < size; ++rank) {
      const auto mine = cpus_of(machine(), {rank, size});
      EXPECT_GE(mine.size(), 8u / static_cast<size_t>(size));
      EXPECT_LE(mine.size(), 8u / static_cast<size_t>(size) + 1);
      total += mine.size();
      for (const Cpu& cpu : mine) seen.insert(cpu.number);
    }
    EXPECT_EQ(total, 8u);
    EXPECT_EQ(seen.size(), 8u);
  }
}

TEST(Cpus, AreSharedByMoreProcessesThanThereAre) {
  std::vector<int> processes(8);
  for (int rank = 0; rank < 24; ++rank) {
    const auto mine = cpus_of(machine(), {rank, 24});
    ASSERT_EQ(mine.size(), 1u);
    ++processes[static_cast<size_t>(mine[0].number)];
  }
  for (const int count : processes) EXPECT_EQ(count, 3);
  EXPECT_TRUE(cpus_of({}, {1, 2}).empty());
}

TEST(Cpus, ThreadsStayWhereTheyAreTold) {
  const auto all = usable_cpus();
  ASSERT_FALSE(all.empty());
  std::string seen;
  std::thread([&] {
    ASSERT_TRUE(stay_on({all.back()}));
    std::thread([&] { seen = cpu_list(usable_cpus()); }).join();
  }).join();
  EXPECT_EQ(seen, std::to_string(all.back().number));
  EXPECT_EQ(cpu_list(usable_cpus()), cpu_list(all));
}

TEST(Cpus, HumbleThreadsAreThoseStartedMeanwhile) {
  const int before = ::sched_getscheduler(0);
  int during = -1, after = -1;
  {
    const Humble humble;
    std::thread([&] { during = ::sched_getscheduler(0); }).join();
  }
  std::thread([&] { after = ::sched_getscheduler(0); }).join();
  EXPECT_EQ(during, before == SCHED_OTHER ? SCHED_BATCH : before);
  EXPECT_EQ(after, before);
}

}  // namespace
}  // namespace rotrnn
