// Users' own data through the whole road: reading, splitting, preprocessing, predicting.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "rotrnn/data/cache.h"
#include "rotrnn/data/task.h"
#include "rotrnn/io/atomic_file.h"
#include "rotrnn/io/formats/npy.h"
#include "tests/support/folder.h"
#include "tests/support/idx.h"

namespace rotrnn {
namespace {

using Names = std::vector<std::string>;

class OwnTasks : public testing::Test {
 protected:
  OwnTasks() { options_.cache = "none"; }

  void file(const std::string& name, const std::string& content) {
    write_file_atomically(folder_ / name, content);
  }

  TaskData load(const std::string& task, const std::string& path) {
    options_.name = task;
    options_.path = (folder_ / path).string();
    check_task(options_);
    return load_task(options_, 1);
  }

  Examples predict(const TaskData& data, const std::string& path) {
    return InputReader(options_, data.facts).file(folder_ / path, 1);
  }

  TaskOptions options_;
  test::Folder folder_;
};

TEST_F(OwnTasks, TextsOfATable) {
  std::string table = "text,mood\n";
  for (int i = 0; i < 40; ++i) table += i % 2 ? "oh no,sad\n" : "oh yes!,glad\n";
  file("moods.csv", table);
  options_.text_column = "text";
  options_.label_column = "mood";
  options_.min_frequency = 1;
  const TaskData data = load("csv", "moods.csv");
  EXPECT_EQ(data.facts.classes, (Names{"glad", "sad"}));
  EXPECT_EQ(data.facts.shape.input, InputKind::tokens);
  EXPECT_EQ(data.facts.shape.outputs, 2);
  EXPECT_EQ(data.train.size() + data.validation.size() + data.test.size(), 40);
  EXPECT_EQ(data.test.size(), 4);
  file("new.csv", "text\noh\n");
  const Examples inputs = predict(data, "new.csv");
  ASSERT_EQ(inputs.size(), 1);
  EXPECT_EQ(inputs.length(0), 3);  // and the end mark
  EXPECT_EQ(inputs.record(0).name, "new.csv:2");
}

TEST_F(OwnTasks, SeriesToForecast) {
  std::string table = "load,temp\n";
  for (int i = 0; i < 100; ++i) table += fmt::format("{},{}\n", i, 2 * i);
  file("power.csv", table);
  options_.target = TaskTarget::forecast;
  options_.horizon = 3;
  const TaskData data = load("series", "power.csv");
  EXPECT_EQ(data.facts.shape.inputs, 2);
  EXPECT_EQ(data.facts.shape.outputs, 6);
  EXPECT_TRUE(data.facts.shape.per_token);
  EXPECT_EQ(data.train.size(), 1);
  EXPECT_EQ(predict(data, "power.csv").length(0), 100);
}

TEST_F(OwnTasks, AClassForEveryStepOfASeries) {
  std::string table = "id,x,on\n";
  for (int i = 0; i < 60; ++i) table += fmt::format("{},{},{}\n", i / 3, i, i % 3 == 1);
  file("f.csv", table);
  options_.target = TaskTarget::token_label;
  options_.id_column = "id";
  options_.label_column = "on";
  const TaskData data = load("series", "f.csv");
  EXPECT_EQ(data.facts.shape.outputs, 2);
  int64_t labels[3] = {};
  data.train.write_token_labels(0, labels);
  EXPECT_EQ(labels[0], 0);
  EXPECT_EQ(labels[1], 1);
  EXPECT_EQ(labels[2], 0);
}

TEST_F(OwnTasks, ArraysWithValuesToTell) {
  std::vector<float> x, y;
  for (int i = 0; i < 30; ++i) {
    for (int t = 0; t < 4; ++t) x.push_back(static_cast<float>(i + t));
    y.push_back(static_cast<float>(10 * i));
  }
  file("x.npy", npy_bytes(std::vector<int64_t>{30, 4}, x));
  file("y.npy", npy_bytes(std::vector<int64_t>{30}, y));
  options_.target = TaskTarget::value;
  const TaskData data = load("npy", "x.npy");
  EXPECT_EQ(data.facts.shape.outputs, 1);
  EXPECT_EQ(data.facts.shape.target, TargetKind::values);
  EXPECT_EQ(data.train.size(), 24);
  EXPECT_EQ(predict(data, "x.npy").size(), 30);
}

TEST_F(OwnTasks, ArchivesOfTimeSeries) {
  std::string head = "@classLabel true b a\n@data\n";
  std::string train = head;
  for (int i = 0; i < 20; ++i) train += fmt::format("{},1,2:{}\n", i, i % 2 ? "a" : "b");
  file("P_TRAIN.ts", train);
  file("P_TEST.ts", head + "1,2:a\n3,4:a\n");
  const TaskData data = load("ts", ".");
  EXPECT_EQ(data.facts.classes, (Names{"a", "b"}));
  EXPECT_EQ(data.train.size(), 18);
  EXPECT_EQ(data.test.size(), 2);
  EXPECT_EQ(data.test.label(0), 0);
}

TEST_F(OwnTasks, ImagesOfIdxFiles) {
  const std::string pixels(20 * 6, '\x40'), labels("\0\1\0\1\0\1\0\1\0\1\0\1\0\1\0\1\0\1\0\1", 20);
  file("train-images-idx3-ubyte", test::idx_bytes({20, 2, 3}, pixels));
  file("train-labels-idx1-ubyte", test::idx_bytes({20}, labels));
  const TaskData data = load("idx", ".");
  EXPECT_EQ(data.facts.shape.inputs, 1);
  EXPECT_EQ(data.facts.typical_length, 6);
  EXPECT_EQ(data.facts.classes, (Names{"0", "1"}));
  EXPECT_EQ(predict(data, "train-images-idx3-ubyte").size(), 20);
}

// Another file of labels beside the same values is another set.
TEST_F(OwnTasks, TheCacheKnowsTheLabelsBesideAFile) {
  const std::vector<float> x(2 << 20, 1.0f);
  file("x.npy", npy_bytes(std::vector<int64_t>{2, 1 << 20}, x));
  const auto labels = [&](int64_t second) {
    file("y.npy", npy_bytes(std::vector<int64_t>{2}, std::vector<int64_t>{0, second}));
  };
  options_.name = "npy";
  options_.path = (folder_ / "x.npy").string();
  options_.cache = (folder_ / "cache").string();
  labels(1);
  const std::string first = cache_key(options_, 1);
  EXPECT_NE(first, "");
  labels(2);
  const std::string second = cache_key(options_, 1);
  EXPECT_NE(first, second);
  labels(1);
  EXPECT_EQ(cache_key(options_, 1), first);
}

}  // namespace
}  // namespace rotrnn
