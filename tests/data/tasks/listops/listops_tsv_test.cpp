#include "rotrnn/data/tasks/listops/listops_tsv.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>

namespace rotrnn {
namespace {

namespace fs = std::filesystem;

ListOpsExamples parse(const std::string& text) {
  std::istringstream input(text);
  return parse_listops_tsv(input, "data/basic_val.tsv");
}

// The message of the std::runtime_error that `action` throws, or nothing.
template <class Action>
std::string message_of(const Action& action) {
  try {
    action();
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

std::string contents(const fs::path& path) {
  std::ifstream input(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(input), {}};
}

class ListOpsTsv : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "listops_XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }

  fs::path folder_;
};

TEST_F(ListOpsTsv, WritesThePublicFormat) {
  ListOpsExamples examples;
  examples.add(tokenize_listops("[SM 6 5 ]"), 1);
  examples.add(tokenize_listops("7"), 7);
  write_listops_tsv(folder_ / "a.tsv", examples);
  EXPECT_EQ(contents(folder_ / "a.tsv"), "Source\tTarget\n( ( ( [SM 6 ) 5 ) ] )\t1\n7\t7\n");
}

TEST_F(ListOpsTsv, ReadsWhatItWrote) {
  const ListOpsSplits splits = generate_listops({}, 1, {400, 20, 0}, 2);  // two pieces of 1 MB
  write_listops_folder(folder_ / "new" / "listops", splits);
  const ListOpsSplits read = read_listops_folder(folder_ / "new" / "listops");
  EXPECT_EQ(read.train, splits.train);
  EXPECT_EQ(read.validation, splits.validation);
  EXPECT_EQ(read.test, ListOpsExamples{});
}

TEST_F(ListOpsTsv, AFolderHasThePublicNames) {
  ListOpsSplits splits;
  splits.train.add(tokenize_listops("1"), 1);
  splits.validation.add(tokenize_listops("2"), 2);
  write_listops_folder(folder_, splits);
  EXPECT_EQ(contents(folder_ / "basic_train.tsv"), "Source\tTarget\n1\t1\n");
  EXPECT_EQ(contents(folder_ / "basic_val.tsv"), "Source\tTarget\n2\t2\n");
  EXPECT_EQ(contents(folder_ / "basic_test.tsv"), "Source\tTarget\n");
}

TEST_F(ListOpsTsv, ReadsPublicLineEndsAndOtherSpellings) {
  const auto expected = parse("Source\tTarget\n( ( ( [SM 6 ) 5 ) ] )\t1\n7\t7\n");
  ASSERT_EQ(expected.size(), 2);
  EXPECT_EQ(expected.labels, (std::vector<uint8_t>{1, 7}));
  EXPECT_EQ(expected.offsets, (std::vector<int64_t>{0, 4, 5}));
  EXPECT_EQ(listops_text(expected.expression(0)), "[SM 6 5 ]");
  EXPECT_EQ(parse("Source\tTarget\r\n( ( ( [SM 6 ) 5 ) ] )\t1\r\n7\t7\r\n"), expected);
  EXPECT_EQ(parse("Source\tTarget\n[SM 6 5 ]\t1\n7\t7"), expected);
}

TEST_F(ListOpsTsv, KeepsATargetThatIsNotTheValue) {
  EXPECT_EQ(parse("Source\tTarget\n[SM 6 5 ]\t9\n").labels.front(), 9);
}

TEST_F(ListOpsTsv, MalformedLinesAreNamed) {
  const std::string good = "Source\tTarget\n[MIN 1 2 ]\t1\n";
  const std::pair<std::string, const char*> cases[] = {
      {"", ":1: the file is empty; write it again"},
      {"\n", ":1: the header is \"\"; the first line must be Source<TAB>Target"},
      {"[MIN 1 2 ]\t1\n", ":1: the header is \"[MIN 1 2 ]?1\"; the first line"},
      {"Source Target\n", ":1: the header is \"Source Target\"; the first line"},
      {"source\ttarget\n", ":1: the header is \"source?target\"; the first line"},
      {good + "[MIN 1 2 ] 1\n", ":3: no tab in \"[MIN 1 2 ] 1\"; write Source<TAB>Target"},
      {good + "\n", ":3: no tab in \"\"; write"},
      {good + "[MIN 1 2 ]\t\n", ":3: the target is \"\"; write one digit"},
      {good + "[MIN 1 2 ]\t10\n", ":3: the target is \"10\"; write one digit"},
      {good + "[MIN 1 2 ]\t-1\n", ":3: the target is \"-1\"; write one digit"},
      {good + "[MIN 1 2 ]\tx\n", ":3: the target is \"x\"; write one digit"},
      {good + "[MIN 1 2 ]\t1\t1\n", ":3: the target is \"1?1\"; write one digit"},
      {good + "\t1\n", ":3: the source is empty; write an expression"},
      {good + " ( ) \t1\n", ":3: the source is empty; write an expression"},
      {good + "[MIN 1 12 ]\t1\n", ":3: ListOps text, byte 8: unknown word \"12\"; use"},
      {good + "[MIN 1 2\t1\n", ":3: ListOps expression, token 4: the end, with 1 list(s) open;"},
      {good + std::string("[MIN 1 \0 ]\t1\n", 13), ":3: ListOps text, byte 8: unknown word \"?\";"},
      {good + std::string(100000, 'a'),
       ":3: no tab in \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa...\""},
  };
  for (const auto& [text, expected] : cases) {
    const std::string message = message_of([&] { parse(text); });
    EXPECT_TRUE(message.starts_with(std::string("data/basic_val.tsv") + expected))
        << "expected " << expected << "\nseen     " << message;
  }
}

TEST_F(ListOpsTsv, MissingFilesAreNamed) {
  const fs::path path = folder_ / "basic_train.tsv";
  const std::string message = message_of([&] { read_listops_folder(folder_); });
  EXPECT_TRUE(message.starts_with(path.string() + ": No such file or directory; make it"))
      << message;
  fs::create_directory(path);
  EXPECT_TRUE(message_of([&] {
                read_listops_tsv(path);
              }).starts_with(path.string() + ": this is a folder; make it"));
}

TEST_F(ListOpsTsv, AFailedWriteLeavesTheOldFile) {
  const fs::path path = folder_ / "a.tsv";
  ListOpsExamples examples;
  examples.add(tokenize_listops("7"), 7);
  write_listops_tsv(path, examples);
  examples.add(tokenize_listops("[MIN 1"), 1);
  EXPECT_THROW(write_listops_tsv(path, examples), std::invalid_argument);
  EXPECT_EQ(contents(path), "Source\tTarget\n7\t7\n");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1);
}

TEST_F(ListOpsTsv, ADeepLineIsRead) {
  std::string line;
  for (int i = 0; i < 1'000'000; ++i) line += "( ( [MAX ";
  line += "5 )";
  for (int i = 0; i < 1'000'000; ++i) line += " ] ) )";
  EXPECT_EQ(parse("Source\tTarget\n" + line + "\t5\n").tokens.size(), 2'000'001u);
}

}  // namespace
}  // namespace rotrnn
