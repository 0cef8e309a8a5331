#include "rotrnn/runtime/score.h"

#include <algorithm>
#include <limits>

#include "tests/runtime/cases.h"

namespace rotrnn::runtime::test {
namespace {

constexpr double kTolerance = 1e-5;  // as for streams

std::vector<int64_t> to_offsets(const std::vector<int64_t>& lengths) {
  std::vector<int64_t> out{0};
  for (const int64_t length : lengths) out.push_back(out.back() + length);
  return out;
}

std::vector<float> score(Scorer& scorer, const Case& c, const std::vector<int64_t>& offsets) {
  return c.takes_tokens() ? scorer.score_tokens(c.tokens, offsets)
                          : scorer.score(c.values, offsets);
}

TEST(Score, EqualsFloat64) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    const auto model = c.load();
    for (const int threads : {0, 1, 2, 3}) {
      Scorer scorer(model, threads);
      const auto got = score(scorer, c, to_offsets(c.lengths));
      const bool every = model->info().pooling == Pooling::none;
      const auto want = every ? std::span(c.logits) : c.row(c.rows() - 1);
      EXPECT_LT(distance(std::span<const float>(got), want), kTolerance) << threads;
      EXPECT_EQ(score(scorer, c, to_offsets(c.lengths)), got);  // again, in the same memory
    }
  }
}

// The same numbers as sequences of many lengths in one call.
TEST(Score, ManySequencesAreThoseOfEach) {
  for (const Case& c : cases()) {
    if (!c.streams) continue;
    SCOPED_TRACE(c.name);
    const auto model = c.load();
    const bool every = model->info().pooling == Pooling::none;
    const ModelInfo& info = model->info();
    std::vector<int64_t> offsets{0};
    std::vector<float> values;
    std::vector<int32_t> tokens;
    std::vector<double> want;
    for (const int64_t steps :
         {int64_t{1}, int64_t{2}, int64_t{5}, int64_t{17}, int64_t{97}, c.steps(), int64_t{3}}) {
      const int64_t length = std::min(steps, c.steps());
      const int64_t kept = (length + info.keep_every - 1) / info.keep_every;
      if (kept < info.window) continue;  // the case has no row for less than a token
      if (c.takes_tokens()) {
        tokens.insert(tokens.end(), c.tokens.begin(), c.tokens.begin() + length);
      } else {
        values.insert(values.end(), c.values.begin(), c.values.begin() + length * c.inputs);
      }
      offsets.push_back(offsets.back() + length);
      const int64_t rows = (kept - info.window) / info.hop + 1;
      for (int64_t r = every ? 0 : rows - 1; r < rows; ++r) {
        want.insert(want.end(), c.row(r).begin(), c.row(r).end());
      }
    }
    for (const int threads : {1, 2, 9}) {
      Scorer scorer(model, threads);
      const auto got =
          c.takes_tokens() ? scorer.score_tokens(tokens, offsets) : scorer.score(values, offsets);
      EXPECT_LT(distance(std::span<const float>(got), std::span<const double>(want)), kTolerance)
          << threads;
    }
  }
}

TEST(Score, TheSameBitsForOneThreadOrAsManyAsBlocks) {
  for (const char* name : {"last", "s4d last", "s4 last", "liquid last"}) {  // three blocks
    const Case& c = case_named(name);
    const auto model = c.load();
    const std::vector<int64_t> offsets{0, 500, 501, c.steps()};
    const auto one = Scorer(model, 1).score(c.values, offsets);
    const auto first = Scorer(model, 1).score(std::span(c.values).first(500), {offsets.data(), 2});
    EXPECT_TRUE(std::equal(first.begin(), first.end(), one.begin()));
    for (const int threads : {2, 3}) {
      for (int again = 0; again < 5; ++again) {
        Scorer scorer(model, threads);
        EXPECT_EQ(scorer.score(c.values, offsets), one);
        EXPECT_EQ(scorer.score(std::span(c.values).first(500), {offsets.data(), 2}), first);
      }
    }
  }
}

TEST(Score, ManyPairsAreThoseOfEach) {
  for (const char* name : {"pairs", "bidirectional pairs", "s4d pairs", "s4 bidirectional pairs"}) {
    const Case& c = case_named(name);
    const auto model = c.load();
    std::vector<int64_t> lengths;
    std::vector<float> values;
    std::vector<int32_t> tokens;
    std::vector<double> want;
    for (int i = 0; i < 5; ++i) {
      values.insert(values.end(), c.values.begin(), c.values.end());
      tokens.insert(tokens.end(), c.tokens.begin(), c.tokens.end());
      lengths.insert(lengths.end(), c.lengths.begin(), c.lengths.end());
      want.insert(want.end(), c.logits.begin(), c.logits.end());
    }
    Scorer scorer(model, 2);
    const auto got = c.takes_tokens() ? scorer.score_tokens(tokens, to_offsets(lengths))
                                      : scorer.score(values, to_offsets(lengths));
    EXPECT_LT(distance(std::span<const float>(got), std::span<const double>(want)), kTolerance);
  }
}

TEST(Score, SaysWhatIsWrong) {
  const Case& c = case_named("none");
  Scorer scorer(c.load(), 1);
  const std::vector<float> values(12);
  const auto refused = [&](std::vector<int64_t> offsets, const char* part) {
    const auto what = thrown<std::invalid_argument>([&] { scorer.score(values, offsets); });
    EXPECT_NE(what.find(part), std::string::npos) << what;
  };
  refused({}, "offsets");
  refused({1, 4}, "begin with 0");
  refused({0, 3}, "end with 4");
  refused({0, 5}, "end with 4");
  refused({0, 2, 2, 4}, "sequence 1");
  refused({0, 3, 2, 4}, "sequence 1");
  EXPECT_THROW(scorer.score(std::vector<float>(11), std::vector<int64_t>{0, 4}),
               std::invalid_argument);
  std::vector<float> holes(12);
  holes[7] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THROW(scorer.score(holes, std::vector<int64_t>{0, 4}), std::invalid_argument);
  EXPECT_THROW(scorer.score_tokens(std::vector<int32_t>{1}, std::vector<int64_t>{0, 1}),
               std::invalid_argument);
  EXPECT_TRUE(scorer.score({}, std::vector<int64_t>{0}).empty());
  Scorer tokens(case_named("tokens").load());
  EXPECT_THROW(tokens.score_tokens(std::vector<int32_t>{1, 11}, std::vector<int64_t>{0, 2}),
               std::invalid_argument);
  Scorer pairs(case_named("pairs").load());
  const auto what = thrown<std::invalid_argument>([&] {
    pairs.score_tokens(std::vector<int32_t>{1, 2, 3}, std::vector<int64_t>{0, 1, 2, 3});
  });
  EXPECT_NE(what.find("pairs"), std::string::npos) << what;
  Scorer permuted(case_named("permuted").load());
  EXPECT_THROW(permuted.score(std::vector<float>(39), std::vector<int64_t>{0, 39}),
               std::invalid_argument);
  EXPECT_THROW(Scorer(nullptr), std::invalid_argument);
  EXPECT_THROW(Scorer(c.load(), -1), std::invalid_argument);
}

}  // namespace
}  // namespace rotrnn::runtime::test
