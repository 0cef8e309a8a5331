#include "rotrnn/data/formats/tables/csv_records.h"

#include <gtest/gtest.h>

#include "rotrnn/io/atomic_file.h"
#include "tests/support/folder.h"
#include "tests/support/idx.h"
#include "tests/support/records.h"

namespace rotrnn {
namespace {

using Names = std::vector<std::string>;
using Values = std::vector<float>;

class CsvRecords : public testing::Test {
 protected:
  CsvRecords() {
    options_.name = "csv";
    options_.text_column = "text";
    options_.label_column = "mood";
  }

  void series() {
    options_.text_column.clear();
    options_.series_column = "ecg";
  }

  std::filesystem::path file(const std::string& name, const std::string& content) {
    std::filesystem::create_directories((folder_ / name).parent_path());
    write_file_atomically(folder_ / name, content);
    return folder_ / name;
  }

  Records read(const std::filesystem::path& path, bool labelled = true, Split split = Split::any) {
    return test::read_records(read_csv_records, options_, path, labelled, split);
  }

  std::string error(const std::string& content, const char* name = "f.csv") {
    const auto path = file(name, content);
    std::string what = test::message_of<std::runtime_error>([&] { read(path); });
    const std::string start = path.string();
    EXPECT_EQ(what.find(start), 0u) << what;
    return what.substr(std::min(what.size(), start.size()));
  }

  std::string wrong_setting() {
    const auto path = file("f.csv", "text,mood\na,b\n");
    return test::message_of<std::invalid_argument>([&] { read(path); });
  }

  TaskOptions options_;
  test::Folder folder_;
};

TEST_F(CsvRecords, TextWithClasses) {
  options_.group_column = "who";
  const Records r = read(file("moods.csv",
                              "who,mood,text\r\nann, good ,\"Well, \"\"yes\"\"\nand é\"\r\n"
                              "bob,bad, no \r\nann,good,x\r\n"));
  ASSERT_EQ(r.size(), 3);
  EXPECT_EQ(r.form, (RecordForm{Element::u8, 1, 1, 1}));
  EXPECT_EQ(test::text(r, 0), "Well, \"yes\"\nand é");
  EXPECT_EQ(test::text(r, 1), " no ");
  EXPECT_EQ(test::labels(r), (Names{"good", "bad", "good"}));
  EXPECT_EQ(r.classes, (Names{"bad", "good"}));
  EXPECT_EQ(test::names(r), (Names{"moods.csv:2", "moods.csv:4", "moods.csv:5"}));
  EXPECT_EQ(r.examples[1].group, "bob");
  EXPECT_EQ(r.examples[0].split, Split::any);
}

TEST_F(CsvRecords, TabsAreNotQuoted) {
  const Records r = read(file("f.tsv", "mood\ttext\ngood\t\"Yes\" he said\nbad\t\"\n"));
  EXPECT_EQ(test::text(r, 0), "\"Yes\" he said");
  EXPECT_EQ(test::text(r, 1), "\"");
  // Another name: the header shows the separator, and there is quoting.
  EXPECT_EQ(test::text(read(file("f.csv", "mood\ttext\ngood\t\"a\tb\"\n")), 0), "a\tb");
  EXPECT_EQ(test::text(read(file("g.csv", "mood;text\ngood;a,b\n")), 0), "a,b");
}

TEST_F(CsvRecords, SeriesInAField) {
  series();
  const Records r = read(file("f.csv",
                              "mood,ecg\na,1 2  -3.5\na,4;5 ; 6\nb,7|8|9e1\nb,10\n"
                              "c,\"[1, 2,3]\"\nc,\"1\n2\"\n"));
  EXPECT_EQ(r.form, (RecordForm{Element::f32, 1, 1, 1}));
  EXPECT_EQ(test::numbers<float>(r, 0), (Values{1, 2, -3.5f}));
  EXPECT_EQ(test::numbers<float>(r, 1), (Values{4, 5, 6}));
  EXPECT_EQ(test::numbers<float>(r, 2), (Values{7, 8, 90}));
  EXPECT_EQ(test::numbers<float>(r, 3), (Values{10}));
  EXPECT_EQ(test::numbers<float>(r, 4), (Values{1, 2, 3}));
  EXPECT_EQ(test::numbers<float>(r, 5), (Values{1, 2}));
  options_.target = TaskTarget::forecast;
  options_.label_column.clear();
  EXPECT_EQ(read(folder_ / "f.csv").labels[0], -1);
}

TEST_F(CsvRecords, ValuesToTell) {
  options_.target = TaskTarget::value;
  options_.target_columns = "height, weight";
  const Records r = read(file("f.csv", "text,weight,height\nabc,70.5,1.8\n"));
  EXPECT_EQ(r.examples[0].values, (Values{1.8f, 70.5f}));
  EXPECT_EQ(error("text,weight,height\nabc,heavy,1.8\n"),
            ":2: column \"weight\": \"heavy\" is not a number");
  EXPECT_EQ(error("text,height\nabc,1.8\n").find(":1: there is no column \"weight\" (task.target"),
            0u);
}

TEST_F(CsvRecords, SplitsByTheNamesOfFiles) {
  file("d/train.csv", "text,mood\na,x\nb,y\n");
  file("d/val.csv", "text,mood\nc,x\n");
  file("d/Test.CSV", "text,mood\nd,x\n");
  file("d/notes.txt", "nothing");
  file("d/.hidden.csv", "nothing");
  const Records r = read(folder_ / "d");
  EXPECT_EQ(test::names(r), (Names{"Test.CSV:2", "train.csv:2", "train.csv:3", "val.csv:2"}));
  EXPECT_EQ(test::splits(r),
            (std::vector{Split::test, Split::train, Split::train, Split::validation}));
  // Without a train file, and for a file that is named, "test" is a word as any other.
  file("e/crash-test.csv", "text,mood\na,x\n");
  EXPECT_EQ(read(folder_ / "e").examples[0].split, Split::any);
  EXPECT_EQ(read(folder_ / "d/train.csv").examples[0].split, Split::any);
  // What the config says, with names that do not clash.
  const Records given = read(folder_ / "d/train.csv", true, Split::test);
  EXPECT_EQ(given.examples[0].split, Split::test);
  EXPECT_EQ(given.examples[0].name, "test/train.csv:2");
  EXPECT_EQ(test::message_of<std::runtime_error>([&] { read(folder_ / "nowhere"); }),
            (folder_ / "nowhere").string() + ": there is no such file or folder; check task.path");
  std::filesystem::create_directory(folder_ / "empty");
  EXPECT_EQ(test::message_of<std::runtime_error>([&] { read(folder_ / "empty"); }),
            (folder_ / "empty").string() +
                ": no file in it has a name that ends in .csv or .tsv or .tab");
}

TEST_F(CsvRecords, PackedFiles) {
  const std::string content = "text,mood\nhello,x\n";
  EXPECT_EQ(test::text(read(file("f.csv.gz", test::gzipped(content))), 0), "hello");
  EXPECT_EQ(test::text(read(file("f.tsv.gz", test::gzipped("text\tmood\n\"q\tx\n"))), 0), "\"q");
  file("d/f.csv", content);
  file("d/f.csv.gz", test::gzipped(content));
  EXPECT_EQ(read(folder_ / "d").size(), 1);
  const std::string packed = test::gzipped(content);
  EXPECT_NE(error(packed.substr(0, packed.size() - 3), "cut.csv.gz").find("gzip"),
            std::string::npos);
}

TEST_F(CsvRecords, ToPredictLabelsAreNotNeeded) {
  options_.group_column = "who";
  const Records r = read(file("f.csv", "text\na\nb\n"), false);
  EXPECT_EQ(r.size(), 2);
  EXPECT_EQ(r.labels, (std::vector<int64_t>{-1, -1}));
  EXPECT_EQ(read(file("g.csv", "text,mood\na,\n"), false).labels[0], -1);
  options_.target = TaskTarget::value;
  options_.target_columns = "v";
  EXPECT_TRUE(read(folder_ / "f.csv", false).examples[0].values.empty());
}

TEST_F(CsvRecords, BadRowsHaveALine) {
  EXPECT_EQ(error("text,mood\na,b\nc\n"), ":3: 1 columns, the header has 2");
  EXPECT_EQ(error("text,mood\na,\n"),
            ":2: column \"mood\": the label is empty; fill it in or remove the row");
  EXPECT_EQ(error("text,mood\n  ,x\n"),
            ":2: column \"text\" is empty; fill it in or remove the row");
  EXPECT_EQ(error("txt,mood\na,b\n"),
            ":1: there is no column \"text\" (task.text_column); did you mean \"txt\"? The columns "
            "are \"txt\", \"mood\"");
  EXPECT_EQ(error("text,mood\ncaf\xe9,b\n"),
            ":2: the byte 0xe9 is not UTF-8; save the text as UTF-8");
  EXPECT_EQ(error(""), ":1: the file is empty; its first line must name the columns");
  series();
  EXPECT_EQ(error("mood,ecg\na,1 2\na,1 NaN 3\n"),
            ":3: column \"ecg\": number 2: \"NaN\" where a number belongs; fill in missing values "
            "first");
  EXPECT_EQ(error("mood,ecg\na,1;;2\n").find(":2: column \"ecg\": number 2: empty"), 0u);
  EXPECT_EQ(error("mood,ecg\na,1;2;\n").find(":2: column \"ecg\": number 3: empty"), 0u);
  EXPECT_EQ(
      error("mood;ecg\na;1,5 2,5\n").find(":2: column \"ecg\": number 1: \"1,5\" has a decimal"),
      0u);
}

TEST_F(CsvRecords, SettingsThatDoNotFit) {
  options_.series_column = "ecg";
  EXPECT_EQ(wrong_setting().find("task.text_column: "), 0u);
  options_.series_column.clear();
  options_.text_column.clear();
  EXPECT_EQ(wrong_setting().find("task.text_column: "), 0u);
  options_.text_column = "text";
  options_.label_column.clear();
  EXPECT_EQ(wrong_setting(), "task.label_column: name the column with the class");
  options_.target = TaskTarget::value;
  EXPECT_EQ(wrong_setting(), "task.target_columns: name the columns with the target values");
  options_.target = TaskTarget::token_label;
  EXPECT_EQ(wrong_setting(),
            "task.target: task \"csv\" can predict class, value, forecast, not \"token_class\"");
}

}  // namespace
}  // namespace rotrnn
