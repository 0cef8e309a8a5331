#include <gtest/gtest.h>

#include <cmath>

#include "rotrnn/data/formats/idx_records.h"
#include "rotrnn/data/formats/series/npy_records.h"
#include "rotrnn/data/formats/series/ts_records.h"
#include "rotrnn/io/atomic_file.h"
#include "rotrnn/io/formats/npy.h"
#include "tests/support/archive.h"
#include "tests/support/folder.h"
#include "tests/support/idx.h"
#include "tests/support/records.h"

namespace rotrnn {
namespace {

using namespace std::string_literals;
using Names = std::vector<std::string>;
using Values = std::vector<float>;
using Shape = std::vector<int64_t>;

std::string floats(const Shape& shape, const Values& values) {
  return npy_bytes(shape, values);
}
std::string integers(const Shape& shape, const std::vector<int64_t>& values) {
  return npy_bytes(shape, values);
}

class ArrayRecords : public testing::Test {
 protected:
  std::filesystem::path file(const std::string& name, const std::string& content) {
    std::filesystem::create_directories((folder_ / name).parent_path());
    write_file_atomically(folder_ / name, content);
    return folder_ / name;
  }

  Records read(Reader reader, const std::string& path, bool labelled = true,
               Split split = Split::any) {
    return test::read_records(reader, options_, folder_ / path, labelled, split);
  }

  std::string error(Reader reader, const std::string& path, bool labelled = true) {
    const std::string what =
        test::message_of<std::runtime_error>([&] { read(reader, path, labelled); });
    const std::string start = folder_.path().string() + "/";
    EXPECT_EQ(what.find(start), 0u) << what;
    return what.substr(std::min(what.size(), start.size()));
  }

  TaskOptions options_;
  test::Folder folder_;
};

using NpyRecords = ArrayRecords;
using TsRecords = ArrayRecords;
using IdxRecords = ArrayRecords;

TEST_F(NpyRecords, PairsOfAFolder) {
  file("d/X_train.npy", floats({2, 3, 2}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}));
  file("d/y_train.npy", integers({2}, {7, -1}));
  file("d/groups_train.npy", integers({2}, {3, 4}));
  file("d/X_test.npy", floats({1, 2, 2}, {0, 1, 2, 3}));
  file("d/y_test.npy", floats({1}, {7}));
  const Records r = read(read_npy_records, "d");
  EXPECT_EQ(r.form, (RecordForm{Element::f32, 2, 1, 1}));
  EXPECT_EQ(test::names(r), (Names{"X_test.npy:0", "X_train.npy:0", "X_train.npy:1"}));
  EXPECT_EQ(test::splits(r), (std::vector{Split::test, Split::train, Split::train}));
  EXPECT_EQ(r.classes, (Names{"-1", "7"}));
  EXPECT_EQ(test::labels(r), (Names{"7", "7", "-1"}));
  EXPECT_EQ(test::numbers<float>(r, 1), (Values{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(test::numbers<float>(r, 0), (Values{0, 1, 2, 3}));
  EXPECT_EQ(r.examples[1].group, "3");
}

TEST_F(NpyRecords, OtherNames) {
  const std::string x = floats({2, 2}, {1, 2, 3, 4}), y = integers({2}, {0, 1});
  for (const auto& [values, labels] : {std::pair{"a/train.npy", "a/train_labels.npy"},
                                       {"b/data.npy", "b/labels.npy"},
                                       {"c/train/x.npy", "c/train/y.npy"},
                                       {"d/Train-Signals.npy", "d/Train-Targets.npy"}}) {
    file(values, x);
    file(labels, y);
    const std::string folder(values, 1);
    EXPECT_EQ(read(read_npy_records, folder).size(), 2) << values;
    EXPECT_EQ(read(read_npy_records, values).size(), 2) << values;  // with what lies beside it
  }
  EXPECT_EQ(read(read_npy_records, "a/train.npy", true, Split::train).examples[1].name,
            "train/train.npy:1");
  test::write_archive(folder_ / "set.zip", {{"x.npy", x}, {"y.npy", y}});
  std::filesystem::rename(folder_ / "set.zip", folder_ / "set.npz");  // as numpy.savez makes it
  EXPECT_EQ(test::labels(read(read_npy_records, "set.npz")), (Names{"0", "1"}));
}

TEST_F(NpyRecords, OtherTargets) {
  file("x.npy", floats({2, 3}, {1, 2, 3, 4, 5, 6}));
  options_.target = TaskTarget::value;
  file("y.npy", floats({2}, {0.5f, 2}));
  EXPECT_EQ(read(read_npy_records, "x.npy").examples[0].values, (Values{0.5f}));
  file("y.npy", floats({2, 2}, {1, 2, 3, 4}));
  EXPECT_EQ(read(read_npy_records, "x.npy").examples[1].values, (Values{3, 4}));
  file("y.npy", floats({2}, {1, NAN}));
  EXPECT_EQ(error(read_npy_records, "x.npy"),
            "y.npy: value 1 is nan; fill in missing values first");
  options_.target = TaskTarget::token_label;
  file("y.npy", integers({2, 3}, {5, 5, 9, 9, 9, 5}));
  const Records r = read(read_npy_records, "x.npy");
  EXPECT_EQ(r.classes, (Names{"5", "9"}));
  EXPECT_EQ(r.examples[0].token_classes, (std::vector<int32_t>{0, 0, 1}));
  options_.target = TaskTarget::forecast;
  file("y.npy", "rubbish");
  EXPECT_EQ(read(read_npy_records, "x.npy").size(), 2);
  options_.target = TaskTarget::label;
  EXPECT_EQ(read(read_npy_records, "x.npy", false).labels[0], -1);
}

TEST_F(NpyRecords, ArraysThatDoNotFit) {
  file("x.npy", floats({2, 2, 1}, {1, 2, 3, 4}));
  EXPECT_EQ(error(read_npy_records, "x.npy").find("x.npy: there are no labels for it"), 0u);
  file("y.npy", integers({3}, {1, 2, 3}));
  EXPECT_EQ(error(read_npy_records, "x.npy"), "y.npy: an array of (3,) for the (2, 2, 1) of " +
                                                  (folder_ / "x.npy").string() + "; write [count]");
  file("y.npy", integers({2, 1}, {1, 2}));
  EXPECT_EQ(error(read_npy_records, "x.npy").find("y.npy: an array of (2, 1) for"), 0u);
  file("y.npy", floats({2}, {1, 1.5f}));
  EXPECT_EQ(error(read_npy_records, "x.npy"), "y.npy: value 1 is 1.5; a whole number belongs here");
  file("y.npy", integers({2}, {1, 2}));
  file("x.npy", floats({2, 2, 1}, {1, 2, 3, NAN}));
  EXPECT_EQ(error(read_npy_records, "x.npy"),
            "x.npy: value [1, 1, 0] is nan; fill in missing values first, and keep within the "
            "range of single precision");
  for (const Shape& shape : {Shape{4}, {2, 2, 1, 1}, {}}) {
    file("x.npy", floats(shape, shape.empty() ? Values{1} : Values{1, 2, 3, 4}));
    EXPECT_EQ(error(read_npy_records, "x.npy"),
              "x.npy: an array of " + npy_shape(shape) +
                  "; write [count, time, channels] or [count, time]");
  }
  file("x.npy", floats({2, 0}, {}));
  EXPECT_EQ(error(read_npy_records, "x.npy"), "x.npy: an array of (2, 0): it is empty");
  EXPECT_EQ(error(read_npy_records, "y.npy").find("y.npy: these are labels"), 0u);
  file("labels.npy", integers({2}, {1, 2}));
  EXPECT_NE(error(read_npy_records, "x.npy").find("belong to the same values"), std::string::npos);
  file("d/a.npy", floats({1, 1, 1}, {1}));
  file("d/b.npy", floats({1, 1, 2}, {1, 2}));
  EXPECT_EQ(error(read_npy_records, "d", false).find("d/b.npy: 2 channels, but"), 0u);
}

constexpr const char* kTrain =
    "@problemName P\n@univariate false\n@classLabel true b a\n@data\n1,2:3,4:a\n5:6:b\n";

TEST_F(TsRecords, PairsOfAFolderOrArchive) {
  const std::string test_part = "@classLabel true b a\n@data\n7:8:b\n";
  file("d/P_TRAIN.ts", kTrain);
  file("d/P_TEST.ts", test_part);
  file("d/P.txt", "about");
  test::write_archive(
      folder_ / "P.zip",
      {{"P/P_TRAIN.ts", kTrain}, {"P/P_TEST.ts", test_part}, {"P/P_TRAIN.arff", "x"}});
  for (const char* path : {"d", "P.zip"}) {
    const Records r = read(read_ts_records, path);
    const std::string folder = path == "d"s ? "" : "P/";
    EXPECT_EQ(test::names(r),
              (Names{folder + "P_TEST.ts:3", folder + "P_TRAIN.ts:5", folder + "P_TRAIN.ts:6"}));
    EXPECT_EQ(test::splits(r), (std::vector{Split::test, Split::train, Split::train}));
    EXPECT_EQ(test::labels(r), (Names{"b", "a", "b"}));
    EXPECT_EQ(test::numbers<float>(r, 1), (Values{1, 3, 2, 4}));
    EXPECT_EQ(r.form, (RecordForm{Element::f32, 2, 1, 1}));
  }
  EXPECT_EQ(read(read_ts_records, "d/P_TRAIN.ts", true, Split::test).examples[0].name,
            "test/P_TRAIN.ts:5");
}

TEST_F(TsRecords, TargetsAreThoseOfTheFile) {
  file("c.ts", kTrain);
  file("v.ts", "@targetLabel true\n@data\n1,2:0.5\n");
  options_.target = TaskTarget::value;
  EXPECT_EQ(read(read_ts_records, "v.ts").examples[0].values, (Values{0.5f}));
  EXPECT_EQ(error(read_ts_records, "c.ts"),
            "c.ts:4: there is no @targetLabel true; task.target may be \"class\"");
  options_.target = TaskTarget::label;
  EXPECT_EQ(error(read_ts_records, "v.ts").find("v.ts:2: there is no @classLabel true"), 0u);
  EXPECT_EQ(read(read_ts_records, "v.ts", false).labels[0], -1);
  file("p.ts", "@classLabel true a\n@data\n1,2:?\n");
  EXPECT_EQ(read(read_ts_records, "p.ts", false).size(), 1);
  EXPECT_EQ(error(read_ts_records, "p.ts").find("p.ts:3: the label \"?\" is none"), 0u);
  options_.target = TaskTarget::forecast;
  EXPECT_EQ(read(read_ts_records, "c.ts").size(), 2);
  options_.target = TaskTarget::token_label;
  EXPECT_THROW(read(read_ts_records, "c.ts"), std::invalid_argument);
}

TEST_F(IdxRecords, ImagesOfAnySize) {
  const std::string images = test::idx_bytes({2, 2, 3}, "\1\2\3\4\5\6\7\x08\x09\x0a\x0b\xff");
  const std::string labels = test::idx_bytes({2}, "\x11\2");
  file("d/train-images-idx3-ubyte.gz", test::gzipped(images));
  file("d/train-labels-idx1-ubyte", labels);
  file("d/t10k-images.idx3-ubyte", images);
  file("d/t10k-labels.idx1-ubyte", labels);
  const Records r = read(read_idx_records, "d");
  ASSERT_EQ(r.size(), 4);
  EXPECT_EQ(r.form, (RecordForm{Element::u8, 1, 1.0 / 255, 1}));
  EXPECT_EQ(test::splits(r), (std::vector{Split::test, Split::test, Split::train, Split::train}));
  EXPECT_EQ(test::labels(r), (Names{"17", "2", "17", "2"}));
  EXPECT_EQ(r.classes, (Names{"2", "17"}));
  EXPECT_EQ(test::numbers<uint8_t>(r, 3), (std::vector<uint8_t>{7, 8, 9, 10, 11, 255}));
  EXPECT_EQ(r.examples[3].name, "train-images-idx3-ubyte.gz:1");
  EXPECT_EQ(read(read_idx_records, "d/t10k-images.idx3-ubyte").size(), 2);
  std::filesystem::remove(folder_ / "d/t10k-labels.idx1-ubyte");
  EXPECT_EQ(read(read_idx_records, "d/t10k-images.idx3-ubyte", false).labels[0], -1);
  EXPECT_EQ(error(read_idx_records, "d").find("d/t10k-images.idx3-ubyte: there are no labels"), 0u);
  file("d/t10k-labels.idx1-ubyte", test::idx_bytes({1}, "a"));
  EXPECT_EQ(error(read_idx_records, "d"),
            "d/t10k-labels.idx1-ubyte: 1 labels for the 2 images of " +
                (folder_ / "d/t10k-images.idx3-ubyte").string() +
                "; the two files do not belong together");
  file("e/images.idx", test::idx_bytes({3, 0, 2}, ""));
  file("e/labels.idx", test::idx_bytes({3}, "abc"));
  EXPECT_EQ(error(read_idx_records, "e"), "e/images.idx: there are no pixels in it");
  options_.target = TaskTarget::value;
  EXPECT_THROW(read(read_idx_records, "d"), std::invalid_argument);
}

}  // namespace
}  // namespace rotrnn
