#include "rotrnn/data/sampler.h"

#include <gtest/gtest.h>

#include <set>

namespace rotrnn {
namespace {

TEST(Sampler, AnEpochVisitsEveryExampleAtMostOnce) {
  Sampler sampler(103, 10, 5);
  EXPECT_EQ(sampler.steps_per_epoch(), 10);
  std::set<int64_t> seen;
  for (int64_t step = 0; step < 10; ++step) {
    for (int64_t i : sampler.batch(step)) {
      EXPECT_TRUE(0 <= i && i < 103);
      EXPECT_TRUE(seen.insert(i).second);
    }
  }
  EXPECT_EQ(seen.size(), 100u);
}

TEST(Sampler, IsAPureFunctionOfSeedAndStep) {
  Sampler a(50, 7, 1), b(50, 7, 1), other(50, 7, 2);
  std::vector<std::vector<int64_t>> forwards;
  for (int64_t step = 0; step < 30; ++step) forwards.push_back(a.batch(step));
  for (int64_t step = 29; step >= 0; --step) EXPECT_EQ(b.batch(step), forwards[step]);
  EXPECT_NE(other.batch(0), forwards[0]);
  EXPECT_NE(forwards[0], forwards[7]) << "every epoch has an order of its own";
}

TEST(Sampler, BatchLargerThanTheDataIsRefused) {
  EXPECT_THROW(Sampler(5, 6, 0), std::invalid_argument);
  EXPECT_THROW(Sampler(5, 0, 0), std::invalid_argument);
}

}  // namespace
}  // namespace rotrnn
