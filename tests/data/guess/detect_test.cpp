#include "rotrnn/data/guess/detect.h"

#include <gtest/gtest.h>

#include "rotrnn/io/atomic_file.h"
#include "tests/support/archive.h"
#include "tests/support/folder.h"

namespace rotrnn {
namespace {

namespace fs = std::filesystem;

// Names are all that is looked at, so the files hold nothing.
std::string task_of(const std::vector<std::string>& files, const std::string& below = "set") {
  const test::Folder folder;
  fs::create_directories(folder / "set");
  for (const std::string& file : files) {
    fs::create_directories((folder / file).parent_path());
    write_file_atomically(folder / file, "x");
  }
  return detect_task(folder / below);
}

TEST(Detect, KnowsThePublicSets) {
  EXPECT_EQ(task_of({"set/basic_train.tsv", "set/basic_val.tsv", "set/basic_test.tsv"}), "listops");
  EXPECT_EQ(task_of({"set/train-images-idx3-ubyte.gz", "set/train-labels-idx1-ubyte.gz"}), "mnist");
  EXPECT_EQ(task_of({"set/new_aan_pairs.train.tsv"}), "retrieval");
  EXPECT_EQ(task_of({"set/cifar-10-batches-bin/data_batch_1.bin"}), "image");
  EXPECT_EQ(task_of({"set/aclImdb/train/pos/0_9.txt", "set/aclImdb/train/neg/0_1.txt",
                     "set/aclImdb/README"}),
            "text");
  EXPECT_EQ(task_of({"set/yes/a_nohash_0.wav", "set/testing_list.txt", "set/LICENSE"}),
            "speech_commands");
  const std::string small = "set/pathfinder32/curv_contour_length_14";
  EXPECT_EQ(task_of({small + "/imgs/0/sample_0.png", small + "/metadata/0.npy"}), "pathfinder");
  const std::string large = "set/pathfinder128/curv_contour_length_14";
  EXPECT_EQ(task_of({large + "/imgs/0/sample_0.png", large + "/metadata/0.npy"}), "pathx");
  EXPECT_EQ(
      task_of({large + "/imgs/0/sample_0.png", large + "/metadata/0.npy"}, "set/pathfinder128"),
      "pathx");
}

TEST(Detect, KnowsUsersFilesByTheirEndings) {
  EXPECT_EQ(task_of({"set/a/1.wav", "set/b/2.WAV", "set/readme.txt"}), "audio_folder");
  EXPECT_EQ(task_of({"set/a/1.txt", "set/b/2.txt"}), "text_folder");
  EXPECT_EQ(task_of({"set/a/1.png", "set/b/2.jpeg"}), "image_folder");
  EXPECT_EQ(task_of({"set/x_train.npy", "set/y_train.npy"}), "npy");
  EXPECT_EQ(task_of({"set/A_TRAIN.ts"}), "ts");
  EXPECT_EQ(task_of({"sales.csv"}, "sales.csv"), "csv");
  EXPECT_EQ(task_of({"x.ts"}, "x.ts"), "ts");
  EXPECT_EQ(task_of({"set/x.Csv.GZ", "set/readme.md"}), "csv");
  EXPECT_EQ(task_of({"set/what.xyz"}), "");
  EXPECT_EQ(task_of({}), "");
  EXPECT_THROW(detect_task("nowhere"), std::runtime_error);
}

TEST(Detect, LooksIntoFilesAndArchives) {
  const test::Folder folder;
  write_file_atomically(folder / "lists.tsv", "Source\tTarget\n( 1 )\t1\n");
  EXPECT_EQ(detect_task(folder / "lists.tsv"), "listops");
  // An archive may have any order: the file that shows the task may come last.
  test::Files files;
  for (int i = 0; i < 6000; ++i)
    files.emplace_back(fmt::format("aclImdb/test/neg/{}_1.txt", i), "x");
  files.emplace_back("aclImdb/train/pos/0_9.txt", "good");
  files.emplace_back("aclImdb/train/neg/0_1.txt", "bad");
  test::write_archive(folder / "a.tar.gz", files);
  EXPECT_EQ(detect_task(folder / "a.tar.gz"), "text");
  test::write_archive(folder / "b.npz", {{"x.npy", "x"}, {"y.npy", "x"}});
  EXPECT_EQ(detect_task(folder / "b.npz"), "npy");
}

TEST(Detect, CountsTheKinds) {
  const test::Folder folder;
  for (const char* name : {"1.wav", "2.Wav", "3.png", "notes.md", "what.xyz"}) {
    write_file_atomically(folder / name, "x");
  }
  const Detected found = detect(folder.path());
  EXPECT_EQ(found.task, "audio_folder");
  EXPECT_TRUE(found.own);
  EXPECT_EQ(found.files, 5);
  ASSERT_EQ(found.kinds.size(), 2u);
  EXPECT_EQ(found.kinds[0].files, 2);
  EXPECT_EQ(found.kinds[1].task, "image_folder");
  EXPECT_TRUE(found.unknown == "notes.md" || found.unknown == "what.xyz");
  EXPECT_TRUE(is_of_kind("text_folder", "notes.md"));
  EXPECT_TRUE(is_of_kind("series", "a/b.csv.gz"));
  EXPECT_FALSE(is_of_kind("csv", "1.wav"));
}

}  // namespace
}  // namespace rotrnn
