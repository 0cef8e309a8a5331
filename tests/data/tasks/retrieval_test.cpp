#include "rotrnn/data/tasks/retrieval.h"

#include <gtest/gtest.h>

#include "rotrnn/io/files.h"
#include "tests/support/sets.h"

namespace rotrnn {
namespace {

using test::expect_contains;
using test::Files;
using Names = std::vector<std::string>;

// As in the Long Range Arena: no header, labels as floats, ids, quotes that mean nothing.
Files pairs() {
  return {{"lra_release/tsv_data/new_aan_pairs.train.tsv",
           "1.0\tP93-1024\tC02-1071\tfirst \"text\ttwo\n"
           "0.0\tE03-1076\tW05-0819\t\xc3\xa4\xc3\xb6\xc3\xbc\tdef\n"},
          {"lra_release/tsv_data/new_aan_pairs.eval.tsv", "0\tA\tB\tx\ty\r\n"},
          {"lra_release/tsv_data/new_aan_pairs.test.tsv", "1\tA\tB\tu\tv"},
          {"lra_release/listops-1000/basic_train.tsv", "Source\tTarget\n"}};
}

TEST(Retrieval, ReadsThePublicFiles) {
  const Records r = test::read_everywhere(read_retrieval, pairs());
  EXPECT_EQ(r.form, (RecordForm{Element::u8, 1, 1, 2}));
  EXPECT_EQ(test::names(r),
            (Names{"eval:0000001", "test:0000001", "train:0000001", "train:0000002"}));
  EXPECT_EQ(test::splits(r),
            (std::vector<Split>{Split::validation, Split::test, Split::train, Split::train}));
  EXPECT_EQ(test::labels(r), (Names{"0", "1", "1", "0"}));
  Names texts;
  for (int64_t i = 0; i < 8; ++i) texts.push_back(test::text(r, i));
  EXPECT_EQ(texts,
            (Names{"x", "y", "u", "v", "first \"text", "two", "\xc3\xa4\xc3\xb6\xc3\xbc", "def"}));
}

TEST(Retrieval, KeepsWhatTheNetworkCanSee) {
  TaskOptions options;
  options.max_tokens = 2;
  const Records r = test::read_everywhere(read_retrieval, pairs(), options);
  EXPECT_EQ(test::text(r, 4), "fi");
  EXPECT_EQ(test::text(r, 6), "\xc3\xa4\xc3\xb6");  // characters, not bytes
  EXPECT_EQ(prepare_retrieval(options, r, std::vector<int64_t>{2, 3}).max_length, 2);
  EXPECT_EQ(prepare_retrieval({}, r, std::vector<int64_t>{2, 3}).max_length, 4000);
  Files files = pairs();
  files[0].second = "1\ta\tb\t" + std::string(9000, 'x') + "\ty\n";
  EXPECT_EQ(test::text(test::read_everywhere(read_retrieval, files), 4), std::string(4000, 'x'));
}

TEST(Retrieval, BadLinesAreNamed) {
  const auto error = [](const std::string& line) {
    Files files = pairs();
    files[0].second += line + "\n";
    std::string message = test::error_of_files(read_retrieval, files);
    const std::string start = "set/lra_release/tsv_data/new_aan_pairs.train.tsv:3: ";
    EXPECT_EQ(message.find(start), 0u) << message;
    return message.substr(std::min(start.size(), message.size()));
  };
  EXPECT_EQ(error("1\ta\tb\tone text"),
            "4 column(s); a line is label, id, id, text, text, separated by tabs");
  EXPECT_EQ(error("1\ta\tb\tone\ttwo\tthree").find("6 column(s)"), 0u);
  EXPECT_EQ(error("").find("1 column(s)"), 0u);
  EXPECT_EQ(error("2\ta\tb\tx\ty"), "the label is \"2\"; labels are 0 and 1");
  EXPECT_EQ(error("nan\ta\tb\tx\ty"), "the label is \"nan\"; labels are 0 and 1");
  EXPECT_EQ(error("0.5\ta\tb\tx\ty"), "the label is \"0.5\"; labels are 0 and 1");
  EXPECT_EQ(error("\ta\tb\tx\ty"), "the label is \"\"; labels are 0 and 1");
  EXPECT_EQ(error("1\ta\tb\tx\tcaf\xe9").find("byte 11 of the line: the byte 0xe9 is not UTF-8"),
            0u);
  expect_contains(test::error_of_cut_archive(read_retrieval, pairs()), "a.tar.gz: ");
}

TEST(Retrieval, PairsWithoutATextAreSkippedAndCounted) {
  Files files = pairs();
  files[0].second += "1\ta\tb\t\ty\n0\ta\tb\tx\t\n";
  const Records r = test::read_everywhere(read_retrieval, files);
  EXPECT_EQ(r.size(), 4);
  EXPECT_EQ(r.skipped, 2);
  expect_contains(r.warnings.at(0), "new_aan_pairs.train.tsv:3: one of the two texts is empty");
  expect_contains(r.warnings.at(1), ":4:");
}

TEST(Retrieval, MissingFilesAreNamed) {
  for (size_t i = 0; i < 3; ++i) {
    Files files = pairs();
    files.erase(files.begin() + static_cast<std::ptrdiff_t>(i));
    expect_contains(test::error_of_files(read_retrieval, files),
                    "set: there is no " + std::string(name_tail(pairs()[i].first, 1)) + " in it");
  }
}

TEST(Retrieval, PairsToPredict) {
  const test::Folder folder;
  test::write_files(folder.path(), {{"p.tsv", "one\ttwo\n1\ta\tb\tthree\tfour\n"}, {"q", "x\n"}});
  const Records r = test::read_sorted(read_retrieval, folder / "p.tsv", {}, false);
  EXPECT_EQ(test::names(r), (Names{"p.tsv:0000001", "p.tsv:0000002"}));
  EXPECT_EQ(r.labels, (std::vector<int64_t>{-1, -1}));
  EXPECT_EQ(test::text(r, 1), "two");
  EXPECT_EQ(test::text(r, 2), "three");
  expect_contains(test::message_of<std::runtime_error>(
                      [&] { test::read_sorted(read_retrieval, folder / "q", {}, false); }),
                  "q:1: 1 column(s)");
  RecordWriter out;
  read_retrieval_line({}, "one\ttwo", out);
  for (const char* bad : {"", "one", "one\t", "\ttwo", "a\tb\tc", "\xff\ta"}) {
    EXPECT_THROW(read_retrieval_line({}, bad, out), std::invalid_argument) << bad;
  }
  EXPECT_EQ(test::text(out.finish(), 1), "two");
}

}  // namespace
}  // namespace rotrnn
