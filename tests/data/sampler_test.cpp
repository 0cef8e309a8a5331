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

TEST(Sampler, TokenBudgetIsFilledAndNeverExceededByMoreThanOne) {
  std::vector<int64_t> lengths;
  for (int64_t i = 0; i < 200; ++i) lengths.push_back(1 + i * 37 % 90);
  lengths[17] = 500;  // longer than the budget
  Sampler sampler(lengths, 300, 3);
  const int64_t steps = sampler.steps_per_epoch();
  std::set<int64_t> seen;
  int64_t total = 0, alone = 0;
  for (int64_t step = 0; step < steps; ++step) {
    const auto batch = sampler.batch(step);
    int64_t tokens = 0;
    for (const int64_t i : batch) {
      EXPECT_TRUE(seen.insert(i).second);
      tokens += lengths[i];
    }
    if (tokens > 300) {
      EXPECT_EQ(batch, std::vector<int64_t>{17});
      ++alone;
    }
    total += tokens;
  }
  EXPECT_EQ(alone, 1);
  EXPECT_EQ(seen.size(), 200u) << "every example in every epoch";
  EXPECT_GT(total / steps, 220) << "well filled";
  EXPECT_NE(sampler.batch(0), sampler.batch(steps)) << "the next epoch has another order";
}

TEST(Sampler, TokenBudgetIsAPureFunctionOfSeedAndStep) {
  std::vector<int64_t> lengths;
  for (int64_t i = 0; i < 50; ++i) lengths.push_back(1 + i * 13 % 40);
  Sampler a(lengths, 100, 1), b(lengths, 100, 1);
  std::vector<std::vector<int64_t>> forwards;
  for (int64_t step = 0; step < 60; ++step) forwards.push_back(a.batch(step));
  for (int64_t step = 59; step >= 0; --step) EXPECT_EQ(b.batch(step), forwards[step]);
}

}  // namespace
}  // namespace rotrnn
