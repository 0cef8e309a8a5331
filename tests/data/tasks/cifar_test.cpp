#include "rotrnn/data/tasks/cifar.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/sets.h"

namespace rotrnn {
namespace {

using test::expect_contains;
using test::Files;
using Names = std::vector<std::string>;

struct Rgb {
  int r, g, b;
};

// A record whose first and last pixels are given, and all others black.
std::string record(int label, Rgb first, Rgb last) {
  std::string out(3073, '\0');
  out[0] = static_cast<char>(label);
  for (const auto& [plane, f, l] : {std::tuple(0, first.r, last.r), std::tuple(1, first.g, last.g),
                                    std::tuple(2, first.b, last.b)}) {
    out[static_cast<size_t>(1 + 1024 * plane)] = static_cast<char>(f);
    out[static_cast<size_t>(1024 + 1024 * plane)] = static_cast<char>(l);
  }
  return out;
}

Files batches() {
  return {{"cifar-10-batches-bin/batches.meta.txt", "airplane\n"},
          {"cifar-10-batches-bin/data_batch_1.bin",
           record(6, {255, 0, 0}, {0, 255, 0}) + record(9, {0, 0, 255}, {255, 255, 255})},
          {"cifar-10-batches-bin/data_batch_2.bin", record(0, {10, 20, 30}, {1, 2, 3})},
          {"cifar-10-batches-bin/readme.html", "<html>"},
          {"cifar-10-batches-bin/test_batch.bin", record(3, {100, 150, 200}, {7, 7, 7})}};
}

TEST(Cifar, ReadsThePublicLayout) {
  const Records r = test::read_everywhere(read_cifar, batches());
  EXPECT_EQ(test::names(r), (Names{"data_batch_1:00000", "data_batch_1:00001", "data_batch_2:00000",
                                   "test_batch:00000"}));
  EXPECT_EQ(test::labels(r), (Names{"frog", "truck", "airplane", "cat"}));
  EXPECT_EQ(r.classes.size(), 10u);
  EXPECT_EQ(test::splits(r),
            (std::vector<Split>{Split::train, Split::train, Split::train, Split::test}));
  // 0.299 R + 0.587 G + 0.114 B, as Pillow rounds it.
  const auto pixels = [&](int64_t i) {
    const auto all = test::numbers<uint8_t>(r, i);
    EXPECT_EQ(all.size(), 1024u);
    return std::pair<int, int>(all.front(), all.back());
  };
  EXPECT_EQ(pixels(0), std::pair(76, 150));
  EXPECT_EQ(pixels(1), std::pair(29, 255));
  EXPECT_EQ(pixels(2), std::pair(18, 2));
  EXPECT_EQ(pixels(3), std::pair(141, 7));
  EXPECT_EQ(r.form, (RecordForm{Element::u8, 1, 1.0 / 255, 1}));
}

TEST(Cifar, PixelsAreScaledAsPublished) {
  const Records r = test::read_everywhere(read_cifar, batches());
  const Preprocessing p = prepare_cifar({}, r, {});
  std::vector<float> values(1024);
  p.write_values(r.sequences.at(3), values.data());
  EXPECT_NEAR(values[0], (141 / 255.0 - 122.6 / 255) / (61.0 / 255), 1e-6);  // of float
  TaskOptions options;
  options.normalisation = Scaling::none;
  prepare_cifar(options, r, {}).write_values(r.sequences.at(3), values.data());
  EXPECT_NEAR(values[0], 141 / 255.0, 1e-7);
}

TEST(Cifar, BadFilesAreNamed) {
  const auto error = [](const std::string& bytes) {
    Files files = batches();
    files[2].second = bytes;
    return test::error_of_files(read_cifar, files);
  };
  const std::string fine = record(1, {}, {}), where = "set/cifar-10-batches-bin/data_batch_2.bin: ";
  EXPECT_EQ(error(fine + record(10, {}, {})),
            where + "offset 3073: label 10; labels are 0 to 9. Is it CIFAR-10, binary version?");
  EXPECT_EQ(error(fine + record(255, {}, {})).find(where + "offset 3073: label 255;"), 0u);
  EXPECT_EQ(error(fine + fine.substr(1)),
            where +
                "offset 3073: 3072 bytes are left, a record has 3073; the file is cut off or of "
                "another format");
  EXPECT_EQ(error("x").find(where + "offset 0: 1 bytes are left"), 0u);
  EXPECT_EQ(error(""), where + "offset 0: the file is empty; is the download complete?");
  expect_contains(test::error_of_cut_archive(read_cifar, batches()),
                  "a.tar.gz: entry cifar-10-batches-bin/");
}

TEST(Cifar, WhatIsMissingIsNamed) {
  Files files = batches();
  files.pop_back();
  expect_contains(test::error_of_files(read_cifar, files), "set: there is no test_batch.bin in it");
  files = batches();
  files.erase(files.begin() + 1, files.begin() + 3);
  expect_contains(test::error_of_files(read_cifar, files),
                  "set: there is no data_batch_*.bin in it");
  expect_contains(test::error_of_files(read_cifar, {{"a.txt", "x"}}), "set: there is no ");
}

TEST(Cifar, ImagesToPredict) {
  const test::Folder folder;
  test::write_files(folder.path(), {{"mine", record(3, {255, 255, 255}, {0, 0, 0})}});
  const Records r = test::read_sorted(read_cifar, folder / "mine", {}, false);
  EXPECT_EQ(r.labels, std::vector<int64_t>{-1});
  EXPECT_EQ(test::numbers<uint8_t>(r, 0)[0], 255);
}

}  // namespace
}  // namespace rotrnn
