#include "rotrnn/board/metrics.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "rotrnn/board/metrics_file.h"
#include "tests/support/folder.h"

namespace rotrnn::board {
namespace {

using Numbers = std::vector<double>;

std::string train(int step, double loss) {
  return fmt::format(
      R"({{"step":{},"split":"train","loss":{},"global_lr":0.001,"tokens_per_second":9e5}})", step,
      loss);
}

void append(const std::filesystem::path& file, const std::string& text) {
  std::ofstream(file, std::ios::app | std::ios::binary) << text;
}

TEST(Metrics, FieldsBecomeCurves) {
  Metrics m;
  m.add_line(train(10, 2.5));
  m.add_line(R"({"step":10,"split":"validation","loss":2.25,"accuracy":0.5,"examples":7})");
  m.add_line(R"({"step":10,"split":"norms","whole":[5,6],"head":[1,1.5]})");
  m.add_line(R"({"step":20,"split":"test","mae":0.125})");
  EXPECT_EQ(m.series().at("train.loss").value(), Numbers{2.5});
  EXPECT_EQ(m.series().at("train.tokens_per_second").value(), Numbers{9e5});
  EXPECT_EQ(m.series().at("validation.accuracy").step(), Numbers{10});
  EXPECT_EQ(m.series().at("norms.whole.1").value(), Numbers{6});
  EXPECT_EQ(m.series().at("norms.head.1").value(), Numbers{1.5});
  EXPECT_EQ(m.series().at("test.mae").value(), Numbers{0.125});
  EXPECT_EQ(m.last_step(), 20);
  EXPECT_EQ(m.bad_lines(), 0);
}

TEST(Metrics, WhatIsNoLineIsCountedAndLeftOut) {
  const char* lines[] = {"",
                         "nonsense",
                         "[]",
                         "{}",
                         R"({"step":1})",
                         R"({"step":-1,"split":"train","loss":1})",
                         R"({"step":1.5,"split":"train","loss":1})",
                         R"({"step":"1","split":"train","loss":1})",
                         R"({"step":18446744073709551615,"split":"train","loss":1})",
                         R"({"step":1,"split":["train"],"loss":1})",
                         R"({"step":1,"split":"train","loss":1)"};
  Metrics m;
  for (const char* line : lines) m.add_line(line);
  EXPECT_EQ(m.bad_lines(), static_cast<int64_t>(std::size(lines)));
  EXPECT_TRUE(m.series().empty());
  m.add_line(R"({"step":1,"split":"train","loss":null,"gradient_norm":"x","memory_mb":1e999})");
  EXPECT_TRUE(m.series().empty());
  m.add_line(R"({"step":1,"split":"<script>","loss":1})");  // a split of the future
  EXPECT_TRUE(m.series().empty());
}

TEST(Metrics, ARunThatWentBackForgetsWhatFollowed) {
  Metrics m;
  for (int step = 10; step <= 50; step += 10) m.add_line(train(step, step));
  m.add_line(R"({"step":50,"split":"validation","accuracy":0.9,"confusion":[[1,2],[3,4]]})");
  m.add_line(R"({"step":50,"split":"lambda","layers":[{"re":[0.5],"im":[0.25]}]})");
  const auto before = m.generation();
  m.add_line(train(30, 3));
  EXPECT_GT(m.generation(), before);
  EXPECT_EQ(m.series().at("train.loss").step(), (Numbers{10, 20, 30}));
  EXPECT_EQ(m.series().at("train.loss").value(), (Numbers{10, 20, 3}));
  EXPECT_EQ(m.series().at("validation.accuracy").size(), 0u);
  EXPECT_TRUE(m.lambda().empty());
  EXPECT_TRUE(m.confusion().empty());
}

TEST(Metrics, EigenvaluesAndConfusion) {
  Metrics m;
  m.add_line(R"({"step":0,"split":"lambda","layers":[{"re":[0.5,-1],"im":[0.25,0],"of":9},null]})");
  ASSERT_EQ(m.lambda().size(), 1u);
  EXPECT_EQ(m.lambda()[0].layers[0], (std::vector<float>{0.5f, 0.25f, -1, 0}));
  EXPECT_TRUE(m.lambda()[0].layers[1].empty());
  m.add_line(R"({"step":1,"split":"lambda","layers":[{"re":[0.5],"im":[]}]})");
  m.add_line(R"({"step":1,"split":"lambda","layers":7})");
  EXPECT_EQ(m.lambda().size(), 1u);
  m.add_line(R"({"step":2,"split":"test","confusion":[[5,1],[0,7]],"classes":["a","\u0001<b>"]})");
  const Confusion& c = m.confusion().at("test");
  EXPECT_EQ(c.counts, (std::vector<std::vector<int64_t>>{{5, 1}, {0, 7}}));
  EXPECT_EQ(c.classes, (std::vector<std::string>{"a", "\uFFFD<b>"}));
  m.add_line(R"({"step":3,"split":"test","confusion":[[5,1],[0]]})");
  m.add_line(R"({"step":3,"split":"test","confusion":[[-1]]})");
  EXPECT_EQ(m.confusion().at("test").step, 2);
}

TEST(Metrics, FramesAreBoundedAndSpreadOverTraining) {
  Metrics m;
  const int n = 10'000;
  for (int i = 0; i <= n; ++i) {
    m.add_line(
        fmt::format(R"({{"step":{},"split":"lambda","layers":[{{"re":[0.1],"im":[0.2]}}]}})", i));
  }
  const auto& frames = m.lambda();
  EXPECT_LE(frames.size(), 241u);
  EXPECT_GE(frames.size(), 60u);
  EXPECT_EQ(frames.front().step, 0);
  EXPECT_EQ(frames.back().step, n);
  for (size_t i = 1; i < frames.size(); ++i) {
    EXPECT_GT(frames[i].step, frames[i - 1].step);
    EXPECT_LT(frames[i].step - frames[i - 1].step, n / 20);
  }
}

TEST(MetricsFile, FollowsAFileThatGrows) {
  const test::Folder folder;
  const Beneath root(folder.path());
  MetricsFile file;
  file.read(root, "metrics.jsonl", 1 << 20);
  EXPECT_FALSE(file.exists());
  append(folder / "metrics.jsonl", train(1, 4) + "\n" + train(2, 3).substr(0, 20));
  file.read(root, "metrics.jsonl", 1 << 20);
  EXPECT_EQ(file.metrics().series().at("train.loss").step(), Numbers{1});
  EXPECT_EQ(file.metrics().bad_lines(), 0);  // a torn line is no bad line
  const auto generation = file.generation();
  append(folder / "metrics.jsonl", train(2, 3).substr(20) + "\n" + train(3, 2) + "\n");
  file.read(root, "metrics.jsonl", 1 << 20);
  EXPECT_EQ(file.metrics().series().at("train.loss").value(), (Numbers{4, 3, 2}));
  EXPECT_EQ(file.generation(), generation);
}

TEST(MetricsFile, AFileThatWasReplacedCutOrRemovedIsReadAnew) {
  const test::Folder folder;
  const Beneath root(folder.path());
  const auto path = folder / "metrics.jsonl";
  MetricsFile file;
  const auto read = [&] {
    const auto before = file.generation();
    file.read(root, "metrics.jsonl", 1 << 20);
    return file.generation() > before;
  };
  append(path, train(1, 4) + "\n" + train(2, 3) + "\n");
  EXPECT_FALSE(read());
  append(folder / "fresh", train(1, 4) + "\n" + train(2, 7) + "\n" + train(3, 8) + "\n");
  std::filesystem::rename(folder / "fresh", path);  // as a resumed run does
  EXPECT_TRUE(read());
  EXPECT_EQ(file.metrics().series().at("train.loss").value(), (Numbers{4, 7, 8}));
  std::filesystem::resize_file(path, 0);
  append(path, train(1, 5) + "\n");
  EXPECT_TRUE(read());
  EXPECT_EQ(file.metrics().series().at("train.loss").value(), Numbers{5});
  // Cut and grown again between two looks, in the same file: only its bytes show it.
  std::filesystem::resize_file(path, 0);
  append(path, train(1, 6) + "\n" + train(2, 6) + "\n" + train(3, 6) + "\n");
  EXPECT_TRUE(read());
  EXPECT_EQ(file.metrics().series().at("train.loss").value(), (Numbers{6, 6, 6}));
  std::filesystem::remove(path);
  EXPECT_TRUE(read());
  EXPECT_FALSE(file.exists());
  EXPECT_TRUE(file.metrics().series().empty());
}

TEST(MetricsFile, ReadsInPartsAndSkipsEndlessLines) {
  const test::Folder folder;
  const Beneath root(folder.path());
  std::string text = train(1, 1) + "\n";
  text += R"({"step":2,"split":"train","loss":2,"x":")" + std::string(3 << 20, 'x') + "\"}\n";
  for (int i = 3; i < 9000; ++i) text += train(i, i) + "\n";
  append(folder / "metrics.jsonl", text);
  MetricsFile file;
  int rounds = 0;
  do {
    file.read(root, "metrics.jsonl", 1 << 18);
    ++rounds;
  } while (file.more());
  EXPECT_GE(rounds, static_cast<int>(text.size() >> 18));
  EXPECT_EQ(file.metrics().series().at("train.loss").size(), 8998u);
}

TEST(MetricsFile, LinksAndPipesAreNotFiles) {
  const test::Folder folder;
  append(folder / "secret", train(1, 1) + "\n");
  std::filesystem::create_directory(folder / "run");
  std::filesystem::create_symlink(folder / "secret", folder / "run/metrics.jsonl");
  MetricsFile file;
  file.read(Beneath(folder / "run"), "metrics.jsonl", 1 << 20);
  EXPECT_FALSE(file.exists());
  std::filesystem::remove(folder / "run/metrics.jsonl");
  ASSERT_EQ(mkfifo((folder / "run/metrics.jsonl").c_str(), 0600), 0);
  file.read(Beneath(folder / "run"), "metrics.jsonl", 1 << 20);
  EXPECT_FALSE(file.exists());
}

}  // namespace
}  // namespace rotrnn::board
