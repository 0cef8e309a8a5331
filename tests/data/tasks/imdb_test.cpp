#include "rotrnn/data/tasks/imdb.h"

#include <gtest/gtest.h>

#include "tests/support/sets.h"

namespace rotrnn {
namespace {

using test::expect_contains;
using test::Files;
using Names = std::vector<std::string>;

// As in the public archive, with what is to be passed over.
Files reviews() {
  return {{"aclImdb/README", "Large Movie Review Dataset"},
          {"aclImdb/imdb.vocab", "the\nand\n"},
          {"aclImdb/imdbEr.txt", "0.0490972013402\n"},
          {"aclImdb/test/neg/0_2.txt", "Once again Mr. Costner"},
          {"aclImdb/test/pos/0_10.txt", "I went <br /><br />and saw"},
          {"aclImdb/test/urls_neg.txt", "http://www.imdb.com/title/tt0064354/usercomments\n"},
          {"aclImdb/test/labeledBow.feat", "9 0:9\n"},
          {"aclImdb/train/neg/0_3.txt", "Story of a man"},
          {"aclImdb/train/neg/1_1.txt", "Airport '77 \xc3\xa9"},
          {"aclImdb/train/pos/0_9.txt", "Bromwell High"},
          {"aclImdb/train/pos/._0_9.txt", "\xff of a Mac"},
          {"aclImdb/train/unsup/0_0.txt", "not labelled"},
          {"aclImdb/train/urls_pos.txt", "http\n"}};
}

TEST(Imdb, ReadsThePublicLayout) {
  const Records r = test::read_everywhere(read_imdb, reviews());
  EXPECT_EQ(test::names(r), (Names{"test/neg/0_2.txt", "test/pos/0_10.txt", "train/neg/0_3.txt",
                                   "train/neg/1_1.txt", "train/pos/0_9.txt"}));
  EXPECT_EQ(test::labels(r), (Names{"neg", "pos", "neg", "neg", "pos"}));
  EXPECT_EQ(r.classes, (Names{"neg", "pos"}));
  EXPECT_EQ(test::splits(r), (std::vector<Split>{Split::test, Split::test, Split::train,
                                                 Split::train, Split::train}));
  EXPECT_EQ(test::text(r, 1), "I went <br /><br />and saw");
  EXPECT_EQ(test::text(r, 3), "Airport '77 \xc3\xa9");
  EXPECT_EQ(r.form, (RecordForm{Element::u8, 1, 1, 1}));
}

TEST(Imdb, ThePathMayBeTheFolderItself) {
  const test::Folder folder;
  test::write_files(folder.path(), reviews());
  test::expect_same(test::read_sorted(read_imdb, folder / "aclImdb"),
                    test::read_sorted(read_imdb, folder.path()));
}

TEST(Imdb, BadFilesAreNamed) {
  Files files = reviews();
  files.push_back({"aclImdb/train/pos/7_7.txt", "caf\xe9 latin"});
  EXPECT_EQ(test::error_of_files(read_imdb, files),
            "set/aclImdb/train/pos/7_7.txt: offset 3: the byte 0xe9 is not UTF-8; save the text as "
            "UTF-8");
  files.back().second = "";
  EXPECT_EQ(test::error_of_files(read_imdb, files),
            "set/aclImdb/train/pos/7_7.txt: the text is empty; remove the file");
  const test::Folder folder;
  test::write_archive(folder / "a.tar.gz", files);
  expect_contains(test::message_of<std::runtime_error>(
                      [&] { test::read_sorted(read_imdb, folder / "a.tar.gz"); }),
                  "a.tar.gz: entry aclImdb/train/pos/7_7.txt: the text is empty");
  expect_contains(test::error_of_cut_archive(read_imdb, reviews()), "a.tar.gz: entry aclImdb/");
}

TEST(Imdb, WhatIsMissingIsNamed) {
  for (const char* part : {"train/neg", "train/pos", "test/neg", "test/pos"}) {
    Files files = reviews();
    std::erase_if(files, [&](const auto& f) { return f.first.find(part) != std::string::npos; });
    EXPECT_EQ(test::error_of_files(read_imdb, files),
              fmt::format("set: there is no {}/*.txt in it; task.path must be the folder aclImdb, "
                          "or aclImdb_v1.tar.gz as downloaded",
                          part));
  }
  TaskOptions options;
  options.name = "text";
  expect_contains(test::message_of<std::invalid_argument>(
                      [&] { test::read_sorted(read_imdb, "/tmp", options, true, Split::train); }),
                  "task.train_path: task \"text\" has splits of its own");
}

TEST(Imdb, TextsToPredict) {
  const test::Folder folder;
  test::write_files(folder.path(), {{"a/1.txt", "one"}, {"b.txt", "two"}, {"c.md", "no"}});
  const Records r = test::read_sorted(read_imdb, folder.path(), {}, false);
  EXPECT_EQ(test::names(r), (Names{"a/1.txt", "b.txt"}));
  EXPECT_EQ(r.labels, (std::vector<int64_t>{-1, -1}));
  const Records one = test::read_sorted(read_imdb, folder / "c.md", {}, false);
  EXPECT_EQ(test::names(one), Names{"c.md"});
  EXPECT_EQ(test::text(one, 0), "no");

  RecordWriter out;
  read_text_line({}, "a line", out);
  EXPECT_THROW(read_text_line({}, "", out), std::invalid_argument);
  EXPECT_THROW(read_text_line({}, "\xff", out), std::invalid_argument);
  EXPECT_EQ(test::text(out.finish(), 0), "a line");
}

TEST(Imdb, LengthsAreLimitedAsInThePaper) {
  const Records r = test::read_everywhere(read_imdb, reviews());
  const std::vector<int64_t> train{2, 3, 4};
  TaskOptions options;
  EXPECT_EQ(prepare_imdb(options, r, train).max_length, 4096);
  options.max_tokens = 7;
  EXPECT_EQ(prepare_imdb(options, r, train).max_length, 7);
}

}  // namespace
}  // namespace rotrnn
