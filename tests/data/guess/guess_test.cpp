#include "rotrnn/data/guess/guess.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "rotrnn/data/guess/guess_names.h"
#include "rotrnn/data/pattern.h"
#include "rotrnn/data/task.h"
#include "rotrnn/io/atomic_file.h"
#include "rotrnn/io/formats/npy.h"
#include "tests/support/sets.h"

namespace rotrnn {
namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

class GuessTest : public testing::Test {
 protected:
  void file(const std::string& name, const std::string& content = "x") {
    fs::create_directories((folder_ / name).parent_path());
    write_file_atomically(folder_ / name, content);
  }

  TaskOptions guess(const std::string& path = ".", const std::string& task = "") {
    guess_ = guess_task(folder_ / path, task);
    EXPECT_EQ(guess_.task.path, (folder_ / path).string());
    EXPECT_GE(guess_.reasons.size(), 2u);
    return guess_.task;
  }

  // Guesses, and reads the data with what was guessed.
  TaskData load(const std::string& path) {
    TaskOptions options = guess(path);
    options.cache = "none";
    options.min_frequency = 1;
    return load_task(options, 1);
  }

  std::string error(const std::string& path = ".", const std::string& task = "") {
    return test::message_of<std::runtime_error>([&] { guess_task(folder_ / path, task); });
  }

  test::Folder folder_;
  Guess guess_;
};

std::string captured(const std::string& pattern, const std::string& name) {
  return Pattern("key", pattern).capture(name).value_or("(none)");
}

// Names

TEST(GuessNames, TheFirstPartThatFilesShareIsTheClass) {
  Names names;
  for (int digit = 0; digit < 10; ++digit) {
    for (const char* speaker : {"ann", "bob", "cy"}) {
      for (int i = 0; i < 5; ++i) names.push_back(fmt::format("{}_{}_{}.wav", digit, speaker, i));
    }
  }
  const NameGuess guess = guess_names(names);
  EXPECT_EQ(guess.classes, (Names{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"}));
  EXPECT_EQ(captured(guess.pattern, "7_ann_3.wav"), "7");
  EXPECT_EQ(captured(guess.pattern, "recordings/7_ann_3.wav"), "7");
  EXPECT_EQ(guess.others, (Names{"ann", "bob", "cy"}));
  EXPECT_EQ(captured(guess.other_pattern, "7_ann_3.wav"), "ann");
}

TEST(GuessNames, KnowsOtherWaysToNameFiles) {
  Names dots, numbered, late;
  for (int i = 0; i < 12; ++i) {
    dots.push_back(fmt::format("{}.{}.jpg", i % 2 ? "cat" : "dog", i));
    numbered.push_back(fmt::format("{}{}.wav", i % 3 ? "on" : "off", i));
    late.push_back(fmt::format("clip{:03}-{}-x.wav", i, i % 2 ? "loud" : "soft"));
  }
  EXPECT_EQ(captured(guess_names(dots).pattern, "dog.4.jpg"), "dog");
  EXPECT_EQ(guess_names(numbered).classes, (Names{"off", "on"}));
  EXPECT_EQ(captured(guess_names(numbered).pattern, "off12.wav"), "off");
  EXPECT_EQ(guess_names(late).classes, (Names{"loud", "soft"}));
  EXPECT_EQ(captured(guess_names(late).pattern, "clip007-loud-x.wav"), "loud");
}

TEST(GuessNames, NamesThatTellNothing) {
  Names counted, different;
  for (int i = 0; i < 30; ++i) {
    counted.push_back(fmt::format("sound_{}.wav", i));
    different.push_back(fmt::format("{:c}{}.wav", 'a' + i % 26, i * i));
  }
  EXPECT_EQ(guess_names(counted).pattern, "");
  EXPECT_EQ(guess_names(different).pattern, "");
  EXPECT_EQ(guess_names({}).pattern, "");
  EXPECT_EQ(guess_names({"a.wav"}).pattern, "");
}

// Folders

TEST_F(GuessTest, FoldersByClassNeedNothingElse) {
  file("dog/1.wav");
  file("cat/1.wav");
  file("README.txt");
  const TaskOptions task = guess();
  EXPECT_EQ(task.name, "audio_folder");
  EXPECT_EQ(task.label_pattern, "");
}

TEST_F(GuessTest, SplitsAboveTheClassesTooAndArchives) {
  test::write_archive(
      folder_ / "a.zip",
      {{"top/train/a/1.png", "x"}, {"top/train/b/1.png", "x"}, {"top/test/a/2.png", "x"}});
  EXPECT_EQ(guess("a.zip").name, "image_folder");
  EXPECT_EQ(guess_.task.label_pattern, "");
}

TEST_F(GuessTest, OneFolderByItsNames) {
  for (int i = 0; i < 12; ++i) {
    file(fmt::format("recordings/{}_x_{}.wav", i % 3, i));
  }
  const TaskOptions task = guess();
  EXPECT_EQ(task.name, "audio_folder");
  EXPECT_EQ(captured(task.label_pattern, "2_x_11.wav"), "2");
}

TEST_F(GuessTest, PublicSetsAreKnown) {
  file("aclImdb/train/pos/0_9.txt");
  file("aclImdb/train/neg/0_1.txt");
  EXPECT_EQ(guess().name, "text");
}

TEST_F(GuessTest, WrongFoldersSaySo) {
  test::expect_contains(error("nowhere"), "there is no such file or folder");
  fs::create_directories(folder_ / "empty");
  test::expect_contains(error("empty"), "the folder is empty");
  file("odd/a.xyz");
  test::expect_contains(error("odd"), "none of its 1 file(s), such as a.xyz,");
  for (int i = 0; i < 4; ++i) {
    file(fmt::format("mixed/{}/{}.wav", i % 2, i));
    file(fmt::format("mixed/{}/{}.png", i % 2, i));
  }
  test::expect_contains(error("mixed"), "4 sound files and 4 pictures are mixed in it");
  EXPECT_EQ(guess("mixed", "image_folder").name, "image_folder");
  file("loose/a/1.wav");
  file("loose/b/1.wav");
  file("loose/2.wav");
  test::expect_contains(error("loose"), "1 of 3 sound files are not in the folder of a class");
  for (int i = 0; i < 9; ++i) file(fmt::format("flat/{}.wav", i));
  test::expect_contains(error("flat"), "the names do not show a class");
  EXPECT_THROW(guess("flat", "audo_folder"), std::invalid_argument);
}

// Tables

TEST_F(GuessTest, ATableOfTexts) {
  std::string table = "when,who,review,stars\n";
  for (int i = 0; i < 60; ++i) {
    table += fmt::format("2024-01-01 10:{:02}:00,{},\"number {}, and {}\",{}\n", i,
                         i % 5 ? "ann" : "bob", i, i % 2 ? "good" : "bad", i % 3);
  }
  file("reviews.csv", table);
  const TaskData data = load("reviews.csv");
  EXPECT_EQ(guess_.task.name, "csv");
  EXPECT_EQ(guess_.task.text_column, "review");
  EXPECT_EQ(guess_.task.label_column, "stars");
  EXPECT_EQ(data.facts.classes, (Names{"0", "1", "2"}));
}

TEST_F(GuessTest, ANamedLabelGoesBeforeOthers) {
  std::string table = "kind\ttext\tplace\n";
  for (int i = 0; i < 60; ++i) {
    table += fmt::format("{}\tsome words {}\t{}\n", i % 2 ? "x" : "y", i, i % 4);
  }
  file("a.tsv", table);
  EXPECT_EQ(guess("a.tsv").label_column, "kind");
}

TEST_F(GuessTest, SeriesInAFieldAndValuesToTell) {
  std::string table = "series;target\n";
  for (int i = 0; i < 60; ++i) table += fmt::format("1 2 {} 4 5;{}.5\n", i, i);
  file("a.csv", table);
  const TaskData data = load("a.csv");
  EXPECT_EQ(guess_.task.series_column, "series");
  EXPECT_EQ(guess_.task.target, TaskTarget::value);
  EXPECT_EQ(guess_.task.target_columns, "target");
  EXPECT_EQ(data.facts.shape.target, TargetKind::values);
}

TEST_F(GuessTest, AStepARow) {
  std::string table = "id,time,ax,ay,label\n";
  for (int series = 0; series < 30; ++series) {
    for (int t = 0; t < 10; ++t) {
      table += fmt::format("w{},{},{}.1,{}.2,{}\n", series, t, t, series, series % 2);
    }
  }
  file("walks.csv", table);
  const TaskData data = load("walks.csv");
  EXPECT_EQ(guess_.task.name, "series");
  EXPECT_EQ(guess_.task.id_column, "id");
  EXPECT_EQ(guess_.task.channel_columns, "ax, ay");
  EXPECT_EQ(guess_.task.label_column, "label");
  EXPECT_EQ(guess_.task.target, TaskTarget::label);
  EXPECT_EQ(data.facts.shape.inputs, 2);
  EXPECT_EQ(data.train.size() + data.validation.size() + data.test.size(), 30);
}

TEST_F(GuessTest, ALabelThatChangesIsOneForEveryStep) {
  std::string table = "id,x,label\n";
  for (int series = 0; series < 30; ++series) {
    for (int t = 0; t < 10; ++t) table += fmt::format("{},{}.5,{}\n", series, t, t / 5);
  }
  file("steps.csv", table);
  EXPECT_EQ(guess("steps.csv").target, TaskTarget::token_label);
}

TEST_F(GuessTest, WithoutALabelTheNextValuesAreTold) {
  std::string table = "date,load,heat\n";
  for (int i = 0; i < 100; ++i) table += fmt::format("2024-01-{},{}.5,{}.25\n", i, i, i);
  file("power.csv", table);
  const TaskOptions task = guess("power.csv");
  EXPECT_EQ(task.name, "series");
  EXPECT_EQ(task.target, TaskTarget::forecast);
  EXPECT_EQ(task.channel_columns, "load, heat");
}

TEST_F(GuessTest, TablesThatCannotBeToldSaySo) {
  std::string wide = "label", rows;
  for (int i = 0; i < 20; ++i) wide += fmt::format(",v{}", i);
  for (int i = 0; i < 40; ++i) {
    rows += fmt::format("\n{}", i % 2);
    for (int k = 0; k < 20; ++k) rows += fmt::format(",{}.5", k * i);
  }
  file("wide.csv", wide + rows + "\n");
  test::expect_contains(error("wide.csv"), "write its 20 numbers into one field");
  file("header.csv", "a,b\n");
  test::expect_contains(error("header.csv"), "there is a header and nothing below it");
  file("none.csv", "");
  EXPECT_NE(error("none.csv"), "");
  file("words.csv", "text\nsome words here\nother words here\nmore words here\n");
  test::expect_contains(error("words.csv"), "no column looks like a label");
}

TEST_F(GuessTest, AMeasuredColumnIsTheValueWhenThereIsNoLabel) {
  std::string table = "text,length,score,row\n";
  for (int i = 0; i < 60; ++i)
    table += fmt::format("some words {},{}.5,{}.25,{}\n", i, i, 60 - i, i);
  file("scores.csv", table);
  EXPECT_EQ(guess("scores.csv").target, TaskTarget::value);
  EXPECT_EQ(guess_.task.target_columns, "score");
}

TEST_F(GuessTest, ColumnsThatTheUserNamesAreNotGuessed) {
  std::string table = "text,words,mood,length,place\n";
  for (int i = 0; i < 60; ++i) {
    table += fmt::format("some longer words {},word number {},{},{}.5,{}\n", i, i, i % 3, i, i % 4);
  }
  file("a.csv", table);
  const auto guessed = [&](auto set) {
    TaskOptions options;
    set(options);
    return guess_task(folder_ / "a.csv", "", options).task;
  };
  EXPECT_EQ(guess("a.csv").label_column, "mood");
  EXPECT_EQ(guessed([](TaskOptions& o) { o.label_column = "place"; }).label_column, "place");
  const TaskOptions value = guessed([](TaskOptions& o) { o.target_columns = "length, mood"; });
  EXPECT_EQ(value.target, TaskTarget::value);
  EXPECT_EQ(value.target_columns, "length, mood");
  EXPECT_EQ(value.label_column, "");
  EXPECT_EQ(value.text_column, "text");
  const TaskOptions words = guessed([](TaskOptions& o) { o.text_column = "words"; });
  EXPECT_EQ(words.text_column, "words");
  EXPECT_EQ(words.label_column, "mood");
  // A label that would else be taken for the text.
  EXPECT_EQ(guessed([](TaskOptions& o) { o.label_column = "text"; }).text_column, "words");
  test::expect_contains(test::message_of<std::runtime_error>(
                            [&] { guessed([](TaskOptions& o) { o.label_column = "modo"; }); }),
                        "task.label_column: there is no column \"modo\"; the columns are text");
}

TEST_F(GuessTest, ColumnsOfStepsThatTheUserNamesAreNotGuessed) {
  std::string table = "engine,x,y,left\n";
  for (int series = 0; series < 40; ++series) {
    for (int t = 0; t < 12; ++t) {
      table += fmt::format("{},{}.1,{}.2,{}.5\n", series, t, series, series);
    }
  }
  file("engines.csv", table);
  TaskOptions given;
  given.id_column = "engine";
  given.target_columns = "left";
  TaskOptions task = guess_task(folder_ / "engines.csv", "", given).task;
  EXPECT_EQ(task.name, "series");
  EXPECT_EQ(task.id_column, "engine");
  EXPECT_EQ(task.target, TaskTarget::value);
  EXPECT_EQ(task.target_columns, "left");
  task.cache = "none";
  const TaskData data = load_task(task, 1);
  EXPECT_EQ(data.facts.shape.inputs, 2);
  EXPECT_EQ(data.train.size() + data.validation.size() + data.test.size(), 40);
}

// The first column is the index that pandas writes, with nothing above it.
TEST_F(GuessTest, ColumnsWithoutANameArePassedOver) {
  std::string steps = ",id,x,label\n", texts = ",text,label\n";
  for (int i = 0; i < 300; ++i) steps += fmt::format("{},{},{}.5,{}\n", i, i / 10, i, i / 10 % 2);
  for (int i = 0; i < 60; ++i) texts += fmt::format("{}.5,some words {},{}\n", i, i, i % 2);
  file("steps.csv", steps);
  file("texts.csv", texts);
  EXPECT_EQ(load("steps.csv").facts.shape.inputs, 1);
  EXPECT_EQ(guess_.task.channel_columns, "x");
  EXPECT_EQ(guess_.task.target, TaskTarget::label);
  EXPECT_EQ(load("texts.csv").facts.classes, (Names{"0", "1"}));
  EXPECT_EQ(guess_.task.text_column, "text");

  file("nameless.csv", ",label\nsome words here,a\nother words here,b\nmore words here,a\n");
  test::expect_contains(error("nameless.csv"), "no column holds texts");
  test::expect_contains(error("nameless.csv"), "1 column(s) without a name in the first line");
  file("empty.csv", ",,\n1,2,3\n");
  test::expect_contains(error("empty.csv"), "the first line names no column");
}

TEST_F(GuessTest, CommasInNamesThatAListMustHold) {
  std::string values = "text,\"score, mean\"\n", steps = "date,\"load, all\"\n";
  for (int i = 0; i < 60; ++i) {
    values += fmt::format("some words {},{}.25\n", i, i);
    steps += fmt::format("2024-01-{},{}.25\n", i, i);
  }
  file("values.csv", values);
  file("steps.csv", steps);
  test::expect_contains(error("values.csv"), "which separates names in task.target_columns");
  test::expect_contains(error("steps.csv"), "which separates names in task.channel_columns");
}

TEST_F(GuessTest, TrainTablesAreLookedAtFirst) {
  std::string train = "text,label\n";
  for (int i = 0; i < 40; ++i) train += fmt::format("words and {},{}\n", i, i % 2);
  file("set/train.csv", train);
  file("set/test.csv", "text,label\nwords,0\n");
  const TaskData data = load("set");
  EXPECT_EQ(data.test.size(), 1);
}

// Arrays and .ts

TEST_F(GuessTest, ArraysByTheirLabels) {
  const std::vector<float> values(20 * 6 * 2, 1.5f);
  const int64_t shape[] = {20, 6, 2};
  std::vector<int64_t> classes(20), steps(20 * 6);
  std::vector<float> targets(20);
  for (size_t i = 0; i < classes.size(); ++i) classes[i] = i % 3;
  for (size_t i = 0; i < steps.size(); ++i) steps[i] = i % 2;
  for (size_t i = 0; i < targets.size(); ++i) targets[i] = static_cast<float>(i) / 7;
  const int64_t one[] = {20}, two[] = {20, 6};
  for (const char* set : {"class", "step", "value", "none"}) {
    file(fmt::format("{}/x.npy", set), npy_bytes(shape, values));
  }
  file("class/y.npy", npy_bytes(one, classes));
  file("step/y.npy", npy_bytes(two, steps));
  file("value/y.npy", npy_bytes(one, targets));
  EXPECT_EQ(guess("class").target, TaskTarget::label);
  EXPECT_EQ(guess("step").target, TaskTarget::token_label);
  EXPECT_EQ(guess("value").target, TaskTarget::value);
  EXPECT_EQ(guess("none").target, TaskTarget::forecast);
  EXPECT_EQ(load("class").facts.classes, (Names{"0", "1", "2"}));
}

TEST_F(GuessTest, TsByItsTags) {
  const std::string tags = "@problemName a\n@univariate true\n";
  file("class.ts", tags + "@classLabel true a b\n@data\n1,2,3:a\n4,5,6:b\n");
  file("value.ts", tags + "@targetLabel true\n@data\n1,2,3:0.5\n4,5,6:1.5\n");
  file("none.ts", tags + "@classLabel false\n@data\n1,2,3\n4,5,6\n");
  EXPECT_EQ(guess("class.ts").target, TaskTarget::label);
  EXPECT_EQ(guess("value.ts").target, TaskTarget::value);
  EXPECT_EQ(guess("none.ts").target, TaskTarget::forecast);
}

}  // namespace
}  // namespace rotrnn
