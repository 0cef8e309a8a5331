#include "rotrnn/data/formats/series/series_records.h"

#include <gtest/gtest.h>

#include "rotrnn/io/atomic_file.h"
#include "tests/support/folder.h"
#include "tests/support/records.h"

namespace rotrnn {
namespace {

using Names = std::vector<std::string>;
using Values = std::vector<float>;

class SeriesRecords : public testing::Test {
 protected:
  SeriesRecords() {
    options_.name = "series";
    options_.id_column = "id";
    options_.label_column = "kind";
  }

  std::filesystem::path file(const std::string& name, const std::string& content) {
    std::filesystem::create_directories((folder_ / name).parent_path());
    write_file_atomically(folder_ / name, content);
    return folder_ / name;
  }

  Records read(const std::filesystem::path& path, bool labelled = true) {
    return test::read_records(read_series_records, options_, path, labelled);
  }

  std::string error(const std::string& content) {
    const auto path = file("f.csv", content);
    const std::string what = test::message_of<std::runtime_error>([&] { read(path); });
    EXPECT_EQ(what.find(path.string()), 0u) << what;
    return what.substr(std::min(what.size(), path.string().size()));
  }

  TaskOptions options_;
  test::Folder folder_;
};

TEST_F(SeriesRecords, RowsAreGathered) {
  options_.group_column = "who";
  const Records r = read(file("f.csv",
                              "kind,id,x,who,y\na,s1,1,ann,10\na,s1,2,ann,20\nb,s2,3,bob,30\n"
                              "a,s1,4,ann,40\nb,s2,5,bob,50\n"));
  EXPECT_EQ(r.form, (RecordForm{Element::f32, 2, 1, 1, 0, {"x", "y"}}));
  EXPECT_EQ(test::names(r), (Names{"f.csv:s1", "f.csv:s2"}));
  EXPECT_EQ(test::labels(r), (Names{"a", "b"}));
  EXPECT_EQ(test::numbers<float>(r, 0), (Values{1, 10, 2, 20, 4, 40}));
  EXPECT_EQ(test::numbers<float>(r, 1), (Values{3, 30, 5, 50}));
  EXPECT_EQ(r.examples[1].group, "bob");
}

TEST_F(SeriesRecords, ChannelsInTheOrderThatIsGiven) {
  options_.channel_columns = "y, x";
  const Records r = read(file("f.csv", "time,x,y,id,kind\n2020-01-01,1,10,s,a\n"));
  EXPECT_EQ(test::numbers<float>(r, 0), (Values{10, 1}));
}

TEST_F(SeriesRecords, WithoutIdsAFileIsASeries) {
  options_.id_column.clear();
  file("d/a.csv", "x,kind\n1,walk\n2,walk\n");
  file("d/sub/b.csv", "x,kind\n3,run\n");
  const Records r = read(folder_ / "d");
  EXPECT_EQ(test::names(r), (Names{"a.csv", "sub/b.csv"}));
  EXPECT_EQ(test::numbers<float>(r, 0), (Values{1, 2}));
  EXPECT_EQ(test::labels(r), (Names{"walk", "run"}));
  EXPECT_EQ(
      error("x,kind\n1,walk\n2,run\n"),
      ":3: column \"kind\": \"run\" in \"f.csv\", which has \"walk\" on line 2; it must be the "
      "same in all rows of a series, which task.id_column distinguishes");
}

TEST_F(SeriesRecords, AClassForEveryStep) {
  options_.target = TaskTarget::token_label;
  const Records r = read(file("f.csv", "id,x,kind\n1,0.5,up\n1,0.6,down\n2,7,up\n1,0.7,up\n"));
  EXPECT_EQ(r.classes, (Names{"down", "up"}));
  EXPECT_EQ(r.examples[0].token_classes, (std::vector<int32_t>{1, 0, 1}));
  EXPECT_EQ(r.examples[1].token_classes, (std::vector<int32_t>{1}));
  EXPECT_EQ(r.labels, (std::vector<int64_t>{-1, -1}));
  EXPECT_EQ(error("id,x,kind\n1,2,\n"),
            ":2: column \"kind\": the class of a step is empty; fill it in or remove the row");
}

TEST_F(SeriesRecords, ValuesToTell) {
  options_.target = TaskTarget::value;
  options_.target_columns = "age";
  const Records r = read(file("f.csv", "id,x,age,kind\n1,2,30.5,q\n1,3,30.50,r\n2,4,31,q\n"));
  EXPECT_EQ(r.form.channels, 1);
  EXPECT_EQ(r.examples[0].values, (Values{30.5f}));
  EXPECT_EQ(r.examples[1].values, (Values{31}));
  EXPECT_EQ(error("id,x,age\n1,2,30\n2,2,40\n1,3,31\n"),
            ":4: column \"age\": \"31\" in \"f.csv:1\", which has \"30\" on line 2; it must be the "
            "same in all rows of a series");
}

TEST_F(SeriesRecords, ForecastsNeedNothingButChannels) {
  options_.target = TaskTarget::forecast;
  options_.id_column.clear();
  options_.label_column.clear();
  const Records r = read(file("f.tsv", "load\ttemp\n1\t2\n3\t4\n"));
  EXPECT_EQ(test::numbers<float>(r, 0), (Values{1, 2, 3, 4}));
  options_.target_columns = "load";
  EXPECT_EQ(test::message_of<std::invalid_argument>([&] {
              read(folder_ / "f.tsv");
            }).find("task.target_columns: a forecast predicts"),
            0u);
}

TEST_F(SeriesRecords, ToPredictLabelsMayBeThereOrNot) {
  options_.group_column = "who";
  const Records without = read(file("f.csv", "id,x\n1,2\n1,3\n"), false);
  const Records with = read(file("g.csv", "id,who,x,kind\n1,,2,\n1,b,3,q\n"), false);
  EXPECT_EQ(without.form.channels, 1);
  EXPECT_EQ(with.form.channels, 1);
  EXPECT_EQ(test::numbers<float>(with, 0), (Values{2, 3}));
  EXPECT_EQ(with.labels[0], -1);
  EXPECT_EQ(with.examples[0].group, "");
}

TEST_F(SeriesRecords, BadRowsHaveALine) {
  EXPECT_EQ(error("id,x,kind\n1,2,a\n1,3,b\n"),
            ":3: column \"kind\": \"b\" in \"f.csv:1\", which has \"a\" on line 2; it must be the "
            "same in all rows of a series");
  EXPECT_EQ(error("id,x,kind\n1,NaN,a\n"),
            ":2: column \"x\": \"NaN\" where a number belongs; fill in missing values first; "
            "task.channel_columns can name the channels");
  EXPECT_EQ(error("id,x,kind\n,1,a\n"),
            ":2: column \"id\": the name of the series is empty; fill it in or remove the row");
  EXPECT_EQ(error("id,kind\n1,a\n"), ":1: there is no column left for a channel");
  EXPECT_EQ(error("id,x,kind\n1,2\n"), ":2: 2 columns, the header has 3");
  EXPECT_EQ(error("x,kind\n1,2\n").find(":1: there is no column \"id\" (task.id_column)"), 0u);
  EXPECT_EQ(error("id,x\n1,2\n").find(":1: there is no column \"kind\" (task.label_column)"), 0u);
  options_.channel_columns = "x,z";
  EXPECT_EQ(error("id,x,kind\n1,2,a\n").find(":1: there is no column \"z\" (task.channel_columns)"),
            0u);
}

TEST_F(SeriesRecords, FilesOfOneFolderHaveTheSameChannels) {
  file("d/a.csv", "id,x,y,kind\n1,2,3,a\n");
  file("d/b.csv", "id,y,x,kind\n1,2,3,a\n");
  EXPECT_EQ(test::message_of<std::runtime_error>([&] { read(folder_ / "d"); }),
            (folder_ / "d/b.csv").string() + ":1: the channels are y, x, in " +
                (folder_ / "d/a.csv").string() +
                " they are x, y; name them in task.channel_columns");
  options_.channel_columns = "x,y";
  EXPECT_EQ(test::numbers<float>(read(folder_ / "d"), 1), (Values{3, 2}));
}

TEST_F(SeriesRecords, SettingsThatDoNotFit) {
  const auto path = file("f.csv", "id,x\n1,2\n");
  options_.label_column.clear();
  for (const TaskTarget target : {TaskTarget::label, TaskTarget::token_label}) {
    options_.target = target;
    EXPECT_EQ(test::message_of<std::invalid_argument>([&] { read(path); }),
              "task.label_column: name the column with the class");
  }
  options_.target = TaskTarget::value;
  EXPECT_EQ(test::message_of<std::invalid_argument>([&] { read(path); }),
            "task.target_columns: name the columns with the target values");
}

}  // namespace
}  // namespace rotrnn
