#include "rotrnn/distributed/shard.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace rotrnn {
namespace {

int64_t tokens_of(const std::vector<int64_t>& lengths, const std::vector<int64_t>& taken) {
  int64_t sum = 0;
  for (const int64_t i : taken) sum += lengths[static_cast<size_t>(i)];
  return sum;
}

TEST(Shard, EverySequenceIsTakenOnce) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<int64_t> lengths(random() % 40);
    for (int64_t& length : lengths) length = static_cast<int64_t>(random() % 100);
    const int size = 1 + static_cast<int>(random() % 6);
    std::vector<int> times(lengths.size());
    for (int rank = 0; rank < size; ++rank) {
      const auto taken = take_shard(lengths, {rank, size});
      EXPECT_TRUE(std::is_sorted(taken.begin(), taken.end()));
      EXPECT_TRUE(lengths.size() < static_cast<size_t>(size) || !taken.empty());
      for (const int64_t i : taken) ++times[static_cast<size_t>(i)];
    }
    EXPECT_EQ(times, std::vector<int>(lengths.size(), 1));
  }
}

TEST(Shard, TokensAreShared) {
  // By count this would be 1,002 tokens against 3.
  const std::vector<int64_t> lengths{1000, 1, 1, 1, 1, 1, 999, 1};
  const auto a = take_shard(lengths, {0, 2}), b = take_shard(lengths, {1, 2});
  EXPECT_LE(std::abs(tokens_of(lengths, a) - tokens_of(lengths, b)), 1);

  std::mt19937 random(2);
  std::vector<int64_t> many(64);
  for (int64_t& length : many) length = 500 + static_cast<int64_t>(random() % 1500);
  int64_t least = INT64_MAX, most = 0;
  for (int rank = 0; rank < 4; ++rank) {
    const int64_t tokens = tokens_of(many, take_shard(many, {rank, 4}));
    least = std::min(least, tokens);
    most = std::max(most, tokens);
  }
  // No two differ by more than one sequence.
  EXPECT_LE(most - least, *std::max_element(many.begin(), many.end()));
  EXPECT_LT(static_cast<double>(most), 1.02 * static_cast<double>(least));
}

TEST(Shard, AloneTakesAllInOrder) {
  const std::vector<int64_t> lengths{5, 1, 9};
  EXPECT_EQ(take_shard(lengths, {}), (std::vector<int64_t>{0, 1, 2}));
}

}  // namespace
}  // namespace rotrnn
