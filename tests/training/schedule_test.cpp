#include "rotrnn/training/schedule.h"

#include <gtest/gtest.h>

#include <cmath>

namespace rotrnn {
namespace {

TEST(Schedule, WarmsUpThenFollowsACosineToTheFloor) {
  TrainingOptions o;
  o.steps = 101;
  o.warmup = 0.1;
  o.lr_floor = 0.01;
  ASSERT_EQ(warmup_steps(o, 1000), 10);
  EXPECT_DOUBLE_EQ(learning_rate_factor(o, 1000, 0), 0.1);
  EXPECT_DOUBLE_EQ(learning_rate_factor(o, 1000, 9), 1.0);
  EXPECT_DOUBLE_EQ(learning_rate_factor(o, 1000, 10), 1.0);
  EXPECT_NEAR(learning_rate_factor(o, 1000, 55), 0.505, 1e-12);
  EXPECT_NEAR(learning_rate_factor(o, 1000, 100), 0.01, 1e-12);
  for (int64_t step = 11; step < 101; ++step) {
    EXPECT_LT(learning_rate_factor(o, 1000, step), learning_rate_factor(o, 1000, step - 1));
  }
}

TEST(Schedule, WarmUpCountsEpochsFromOneOn) {
  TrainingOptions o;
  o.steps = 1000;
  o.warmup = 1;
  EXPECT_EQ(warmup_steps(o, 37), 37);
  o.warmup = 2.5;
  EXPECT_EQ(warmup_steps(o, 100), 250);
  o.warmup = 100;
  EXPECT_EQ(warmup_steps(o, 37), 1000);
  o.warmup = 0;
  EXPECT_EQ(warmup_steps(o, 37), 0);
  EXPECT_DOUBLE_EQ(learning_rate_factor(o, 37, 0), 1.0);
}

TEST(Schedule, OneStepIsAllowed) {
  TrainingOptions o;
  o.steps = 1;
  o.warmup = 0;
  EXPECT_TRUE(std::isfinite(learning_rate_factor(o, 1, 0)));
}

}  // namespace
}  // namespace rotrnn
