#include "rotrnn/training/init/suggest.h"

#include <gtest/gtest.h>

#include <numeric>

#include "tests/support/sets.h"

namespace rotrnn {
namespace {

Guess audio_guess() {
  Guess guess;
  guess.task.name = "audio_folder";
  guess.task.path = "sounds";
  guess.reasons = {{"task.name", "sound files, one folder per class"},
                   {"task.path", "where they are"}};
  return guess;
}

DataFacts facts(DataKind kind, int64_t train, int64_t length, int64_t classes = 4) {
  DataFacts f;
  f.kind = kind;
  f.shape = {
      kind == DataKind::text || kind == DataKind::lists ? InputKind::tokens : InputKind::channels,
      1, TargetKind::classes, classes};
  f.train = train;
  f.validation = f.test = train / 10;
  f.shortest = length / 2;
  f.median = length;
  f.usual = f.longest = 2 * length;
  f.tokens = train * length;
  f.rate = kind == DataKind::sound ? 16000 : 0;
  for (int64_t i = 0; i < classes; ++i) {
    f.classes.push_back("class " + std::to_string(i));
    f.counts.push_back(train / classes);
  }
  return f;
}

// What is written reads back as what was chosen, whatever the data.
TEST(Suggest, TheTextIsTheConfig) {
  for (const DataKind kind :
       {DataKind::text, DataKind::lists, DataKind::sound, DataKind::pictures, DataKind::series}) {
    for (const int64_t train : {20, 250, 2500, 50'000, 1'000'000}) {
      for (const int64_t length : {4, 150, 3000, 200'000}) {
        SCOPED_TRACE(testing::Message() << static_cast<int>(kind) << " " << train << " " << length);
        const DataFacts f = facts(kind, train, length);
        Suggestion s = suggest(audio_guess(), f);
        fit_time(s, f, {1, 0.2, 3, 3}, 0);
        check(s.config);
        const Config read = parse_config(to_commented_toml(s, {"made by a test", ""}), "test");
        EXPECT_EQ(differences(read, s.config), std::vector<std::string>());
        // A step holds about as many sequences as said, and no more than memory does.
        const FrontendOptions& frontend = s.config.model.frontend;
        const int64_t samples = frontend.used() ? frontend.hop : 1;  // of a token
        EXPECT_LE(s.config.training.batch_tokens, std::max<int64_t>(2 * length, 66'000 * samples));
        EXPECT_GE(s.config.training.steps, 20);
        EXPECT_LE(s.config.training.evaluate_every, s.config.training.steps);
        EXPECT_LE(s.config.training.checkpoint_every, s.config.training.steps);
      }
    }
  }
}

TEST(Suggest, EveryKeyHasAReasonAndItsSectionOnce) {
  const DataFacts f = facts(DataKind::sound, 2000, 16'000);
  const Suggestion s = suggest(audio_guess(), f);
  const std::string text = to_commented_toml(s, {});
  for (const char* section : {"[task]", "[frontend]", "[model]", "[model.init]", "[training]"}) {
    const auto first = text.find(section);
    ASSERT_NE(first, text.npos) << section;
    EXPECT_EQ(text.find(section, first + 1), text.npos) << section;
  }
  for (const Reason& reason : s.reasons) EXPECT_NE(reason.why, "") << reason.key;
}

TEST(Suggest, NamesOfUsersCannotBreakTheFile) {
  Guess guess = audio_guess();
  guess.task.name = "csv";
  guess.task.text_column = "a \"b\" \\ # c";
  guess.task.label_column = "l\nm";
  guess.reasons.push_back({"task.text_column", "values: \n[task]\x01, \xff\xfe"});
  guess.reasons.push_back({"task.label_column", "é…"});
  guess.advice.push_back("one\ntwo");
  const Suggestion s = suggest(guess, facts(DataKind::text, 100, 50));
  const Config read = parse_config(to_commented_toml(s, {"x\ny"}), "test");
  EXPECT_EQ(read.task.text_column, guess.task.text_column);
  EXPECT_EQ(read.task.label_column, guess.task.label_column);
}

TEST(Suggest, LongSequencesAreCutOrThinned) {
  EXPECT_EQ(suggest(audio_guess(), facts(DataKind::text, 20'000, 1500)).config.task.max_tokens,
            2048);
  EXPECT_EQ(suggest(audio_guess(), facts(DataKind::text, 20'000, 500)).config.task.max_tokens, 0);
  // Of sound whose rate is not known; else a front end makes it short.
  const auto keep_every = [](int64_t length, int64_t rate) {
    DataFacts f = facts(DataKind::sound, 2000, length);
    f.rate = rate;
    return suggest(audio_guess(), f).config.task.keep_every;
  };
  EXPECT_EQ(keep_every(16'000, 0), 2);
  EXPECT_EQ(keep_every(320'000, 0), 8);
  EXPECT_EQ(keep_every(3000, 0), 1);
  EXPECT_EQ(keep_every(16'000, 16'000), 1);
}

TEST(Suggest, FastSignalsGetAFrontEnd) {
  const auto frontend = [](const DataFacts& f) {
    const Suggestion s = suggest(audio_guess(), f);
    check(s.config);
    return s.config.model.frontend;
  };
  DataFacts f = facts(DataKind::sound, 2000, 16'000);
  FrontendOptions o = frontend(f);
  EXPECT_EQ(o.kind, FrontendKind::rotations);
  EXPECT_EQ(o.hop, 160);
  EXPECT_EQ(o.bands, 64);
  EXPECT_EQ(o.low, 60);
  EXPECT_EQ(o.high, 7700);
  EXPECT_GE(suggest(audio_guess(), f).config.model.width, 64);
  // Some tokens must be left, and few channels.
  f.median = 480;
  EXPECT_EQ(frontend(f).hop, 30);
  f = facts(DataKind::series, 500, 20'000);
  f.rate = 1000;
  f.shape.inputs = 9;
  o = frontend(f);
  EXPECT_EQ(o.hop, 10);
  EXPECT_EQ(o.bands, 24);
  f.rate = 50;  // slow sensors
  EXPECT_FALSE(frontend(f).used());
  f = facts(DataKind::series, 500, 20'000);
  f.rate = 0;
  EXPECT_FALSE(frontend(f).used());
  EXPECT_NE(suggest(audio_guess(), f).advice.size(), 0u);  // of patches
  EXPECT_FALSE(frontend(facts(DataKind::text, 500, 200)).used());
}

TEST(Suggest, ForecastsCutLongSeries) {
  Guess guess = audio_guess();
  guess.task.name = "series";
  guess.task.target = TaskTarget::forecast;
  DataFacts f = facts(DataKind::series, 1, 10'000, 0);
  f.shape.target = TargetKind::values;
  f.shape.per_token = true;
  f.shape.outputs = 1;
  Guess few = guess;
  EXPECT_TRUE(cut_into_windows(guess, f));
  EXPECT_EQ(guess.task.window, 156);  // 64 examples
  EXPECT_FALSE(cut_into_windows(guess, f)) << "it is set";
  f = facts(DataKind::series, 64, 156, 0);
  f.shape.target = TargetKind::values;
  f.shape.per_token = true;
  f.shape.outputs = 1;
  const Suggestion s = suggest(guess, f);
  EXPECT_EQ(s.config.task.window, 156);
  EXPECT_EQ(s.config.model.pooling, Pooling::none);
  check(s.config);
  EXPECT_FALSE(cut_into_windows(few, f)) << "they are many";
  f.tokens = 100;
  test::expect_contains(test::message_of<std::runtime_error>([&] { suggest(guess, f); }),
                        "100 steps to learn a forecast from are too few");
}

TEST(Suggest, TooLittleToLearnFromIsAnError) {
  const auto message = [](const DataFacts& f) {
    return test::message_of<std::runtime_error>([&] { suggest(audio_guess(), f); });
  };
  test::expect_contains(message(facts(DataKind::sound, 12, 100)), "sounds: 12 examples");
  test::expect_contains(message(facts(DataKind::sound, 100, 100, 1)),
                        "the same label, \"class 0\"");
  test::expect_contains(message(facts(DataKind::sound, 100, 100, 80)), "80 classes among 100");
}

TEST(Suggest, ABudgetDecidesTheSteps) {
  const DataFacts f = facts(DataKind::series, 1000, 100);
  const RunCost cost{2, 0.05, 1, 1};
  for (const double minutes : {1.0, 5.0}) {
    Suggestion s = suggest(audio_guess(), f);
    fit_time(s, f, cost, minutes);
    EXPECT_LE(s.seconds, 62 * minutes);
    EXPECT_GE(s.seconds, 50 * minutes);
  }
  // Without one, what the data are worth.
  Suggestion s = suggest(audio_guess(), f);
  const int64_t steps = s.config.training.steps;
  fit_time(s, f, cost, 0);
  EXPECT_EQ(s.config.training.steps, steps);
  // And no more than half an hour.
  fit_time(s, f, {2, 5, 10, 10}, 0);
  EXPECT_LE(s.seconds, 31 * 60);
  EXPECT_GE(s.seconds, 25 * 60);
}

TEST(Suggest, AShortBudgetTestsOnAPart) {
  DataFacts f = facts(DataKind::text, 20'000, 1000);
  f.test = 25'000;
  Suggestion s = suggest(audio_guess(), f);
  fit_time(s, f, {1, 0.1, 4, 40}, 1);
  EXPECT_EQ(s.config.task.counts.test, 7500);  // a fifth of a minute of 40 seconds
  EXPECT_LE(s.seconds, 65);
  EXPECT_EQ(parse_config(to_commented_toml(s, {}), "test").task.counts.test, 7500);
}

TEST(Suggest, WhatTheUserSetStays) {
  DataFacts f = facts(DataKind::text, 20'000, 1000);
  f.test = 25'000;
  const RunCost cost{1, 0.1, 4, 40};
  const auto fitted = [&](const std::vector<std::string>& fixed) {
    Suggestion s = suggest(audio_guess(), f);
    TrainingOptions& t = s.config.training;
    t.steps = 4321;
    t.evaluate_every = 77;
    t.checkpoint_every = 78;
    t.log_every = 79;
    fit_time(s, f, cost, 1, fixed);
    return s;
  };
  const Suggestion kept = fitted({"training.steps", "training.evaluate_every",
                                  "training.checkpoint_every", "training.log_every", "task.test"});
  EXPECT_EQ(kept.config.training.steps, 4321);
  EXPECT_EQ(kept.config.training.evaluate_every, 77);
  EXPECT_EQ(kept.config.training.checkpoint_every, 78);
  EXPECT_EQ(kept.config.training.log_every, 79);
  EXPECT_EQ(kept.config.task.counts.test, 0);
  // The time is that of the kept steps: 432 s of training, 57 evaluations of 4 s, the test, the
  // rest.
  EXPECT_NEAR(kept.seconds, 432.1 + 57 * 4 + 40 + 1, 1);
  test::expect_contains(to_commented_toml(kept, {}), "as given");
  const TrainingOptions chosen = fitted({}).config.training;
  EXPECT_NE(chosen.steps, 4321);
  EXPECT_NE(chosen.evaluate_every, 77);
  EXPECT_NE(chosen.checkpoint_every, 78);
  EXPECT_NE(chosen.log_every, 79);
}

TEST(Suggest, RareClassesAreMentioned) {
  DataFacts f = facts(DataKind::series, 1000, 100, 2);
  EXPECT_TRUE(suggest(audio_guess(), f).advice.empty());
  f.counts = {900, 100};
  const Suggestion s = suggest(audio_guess(), f);
  ASSERT_EQ(s.advice.size(), 1u);
  test::expect_contains(s.advice[0], "class_weights = \"balanced\"");
  EXPECT_EQ(s.config.training.class_weights, ClassWeights::none);
}

}  // namespace
}  // namespace rotrnn
