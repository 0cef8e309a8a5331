#include "rotrnn/base/random.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace rotrnn {
namespace {

TEST(Random, IsRepeatableAndStreamsDiffer) {
  auto first = [](uint64_t seed, RandomSite site, std::initializer_list<uint64_t> stream) {
    Random random(seed, site, stream);
    return (uint64_t{random.bits()} << 32) | random.bits();
  };
  EXPECT_EQ(first(1, RandomSite::shuffle, {2, 3}), first(1, RandomSite::shuffle, {2, 3}));
  std::set<uint64_t> seen;
  for (uint64_t seed : {0, 1, 2}) {
    for (auto site : {RandomSite::initialise, RandomSite::shuffle, RandomSite::dropout}) {
      seen.insert(first(seed, site, {}));
      for (uint64_t a = 0; a < 20; ++a) {
        seen.insert(first(seed, site, {a}));
        for (uint64_t b = 0; b < 20; ++b) seen.insert(first(seed, site, {a, b}));
      }
    }
  }
  EXPECT_EQ(seen.size(), 3u * 3u * (1 + 20 + 400)) << "no two streams begin alike";
}

TEST(Random, NumbersHaveTheirDistributions) {
  Random random(7, RandomSite::initialise, {1});
  const int n = 200'000;
  double mean = 0, square = 0, fourth = 0, uniform = 0;
  for (int i = 0; i < n; ++i) {
    const double x = random.normal(), u = random.uniform();
    ASSERT_TRUE(0 <= u && u < 1);
    mean += x / n;
    square += x * x / n;
    fourth += x * x * x * x / n;
    uniform += u / n;
  }
  // Five standard errors of each.
  EXPECT_NEAR(mean, 0, 0.0112);
  EXPECT_NEAR(square, 1, 0.0159);
  EXPECT_NEAR(fourth, 3, 0.11);
  EXPECT_NEAR(uniform, 0.5, 0.0033);
  std::vector<int> counts(7);
  for (int i = 0; i < 70'000; ++i) ++counts[random.below(7)];
  for (int count : counts) EXPECT_NEAR(count, 10'000, 470);
}

// The known answers that Random123, the authors' code, ships.
TEST(Random, PhiloxGivesThePublishedBlocks) {
  using Block = std::array<uint32_t, 4>;
  EXPECT_EQ(Random::philox({0, 0, 0, 0}, {0, 0}),
            (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  const uint32_t ones = 0xffffffff;
  EXPECT_EQ(Random::philox({ones, ones, ones, ones}, {ones, ones}),
            (Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(
      Random::philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
      (Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

}  // namespace
}  // namespace rotrnn
