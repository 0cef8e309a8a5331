#include "rotrnn/training/loader.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/examples.h"

namespace rotrnn {
namespace {

TEST(Loader, SharesOfAllRanksMakeTheStep) {
  const Examples examples = test::token_examples(12, 5, 7);
  const DataShape shape{InputKind::tokens, 7, TargetKind::classes, 12};
  std::vector<double> weights;
  for (int i = 0; i < 12; ++i) weights.push_back(1 + i);  // example i is of class i
  for (const bool weighted : {false, true}) {
    const Sampler sampler(12, 8, 5);
    std::vector<int64_t> seen;
    double total = 0, part_tokens = 0;
    for (int rank = 0; rank < 3; ++rank) {
      BatchLoader loader(examples, shape, sampler, 0, 1, 2, {rank, 3},
                         weighted ? weights : std::vector<double>{});
      double whole = 0, mine = 0;
      const auto weight = [&](int64_t i) { return weighted ? weights[static_cast<size_t>(i)] : 1; };
      for (const int64_t i : Sampler(sampler).batch(0)) whole += weight(i);
      for (const Batch& part : loader.next()) {
        EXPECT_FALSE(part.placeholder);
        total += part.share;
        part_tokens += static_cast<double>(part.step_tokens);
        mine = 0;
        for (const int64_t i : part.sequences) mine += weight(i);
        EXPECT_NEAR(part.share, mine / whole, 1e-12);
        seen.insert(seen.end(), part.sequences.begin(), part.sequences.end());
      }
    }
    EXPECT_NEAR(total, 1, 1e-12);
    EXPECT_EQ(part_tokens, 3 * 8 * 5);  // every rank counts the tokens of all
    auto batch = Sampler(sampler).batch(0);
    std::sort(batch.begin(), batch.end());
    std::sort(seen.begin(), seen.end());
    EXPECT_EQ(seen, batch);
  }
}

TEST(Loader, GivesAStandInToWhomNothingFalls) {
  const Examples examples = test::token_examples(4, 5, 7);
  const DataShape shape{InputKind::tokens, 7, TargetKind::classes, 4};
  // 5 tokens per sequence and 5 per batch: one sequence for two ranks.
  BatchLoader loader(examples, shape, Sampler(std::vector<int64_t>(4, 5), 5, 0), 0, 1, 1, {1, 2});
  const auto parts = loader.next();
  ASSERT_EQ(parts.size(), 1u);
  EXPECT_TRUE(parts[0].placeholder);
  EXPECT_EQ(parts[0].share, 0);
  EXPECT_EQ(parts[0].input().sequences(), 1u);
}

TEST(Batches, HaveWhatTheExamplesHave) {
  const Examples examples = test::token_examples(4, 5, 3);
  const std::vector<int64_t> numbers{2, 0};
  const DataShape shape{InputKind::tokens, 3, TargetKind::classes, 4};
  const Batch batch = make_batch(examples, shape, numbers);
  EXPECT_EQ(batch.offsets, (std::vector<int64_t>{0, 5, 10}));
  EXPECT_EQ(batch.tokens, (std::vector<int64_t>{0, 1, 2, 0, 1, 0, 1, 2, 0, 1}));
  EXPECT_EQ(batch.classes, numbers) << "example i is of class i";
  EXPECT_EQ(batch.sequences, numbers);
  EXPECT_EQ(batch.rows, 2u);
  EXPECT_TRUE(make_batch(examples, shape, numbers, false).classes.empty());
}

}  // namespace
}  // namespace rotrnn
