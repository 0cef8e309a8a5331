#include "rotrnn/io/formats/csv.h"

#include <gtest/gtest.h>

#include <functional>

#include "rotrnn/base/random.h"
#include "tests/support/folder.h"

namespace rotrnn {
namespace {

using namespace std::string_literals;
using Rows = std::vector<std::vector<std::string>>;

struct Read {
  Rows rows;
  std::vector<int64_t> lines;
};

Read read(const std::string& content, CsvOptions options = {}) {
  CsvReader reader(content, "f.csv", options);
  Read out;
  for (std::vector<std::string_view> fields; reader.next(fields);) {
    out.rows.emplace_back(fields.begin(), fields.end());
    out.lines.push_back(reader.place().line);
  }
  return out;
}

std::string error_of(const std::string& content, CsvOptions options = {}) {
  return test::message_of<std::runtime_error>([&] { read(content, options); });
}

std::string table_error(
    const std::string& content, const std::function<void(CsvTable&)>& use = [](CsvTable&) {}) {
  return test::message_of<std::runtime_error>([&] {
    CsvTable table(content, "f.csv");
    use(table);
  });
}

TEST(Csv, Rfc4180) {
  EXPECT_EQ(read("aaa,bbb,ccc\r\nzzz,yyy,xxx\r\n").rows,
            (Rows{{"aaa", "bbb", "ccc"}, {"zzz", "yyy", "xxx"}}));
  EXPECT_EQ(read("aaa,bbb\nzzz,yyy").rows, (Rows{{"aaa", "bbb"}, {"zzz", "yyy"}}));
  EXPECT_EQ(read("\"aaa\",\"b \r\nbb\",\"c,c\"\r\nz,\"y\"\"y\",\"\"\"\"").rows,
            (Rows{{"aaa", "b \r\nbb", "c,c"}, {"z", "y\"y", "\""}}));
  EXPECT_EQ(read("a,,\n,,b\n").rows, (Rows{{"a", "", ""}, {"", "", "b"}}));
  EXPECT_EQ(read(" a , b ").rows, (Rows{{" a ", " b "}}));
  EXPECT_EQ(read("\"\"\n\"\",\"\"").rows, (Rows{{""}, {"", ""}}));
  EXPECT_EQ(read("a,b,").rows, (Rows{{"a", "b", ""}}));
  EXPECT_EQ(read("a,\"b\",").rows, (Rows{{"a", "b", ""}}));
}

TEST(Csv, EmptyLinesAndTheMarkAreNoRecords) {
  EXPECT_EQ(read("").rows, Rows{});
  EXPECT_EQ(read("\n\r\n\n").rows, Rows{});
  const Read out = read("\xef\xbb\xbf\n\na,b\r\n\r\n\nc,d\n\n");
  EXPECT_EQ(out.rows, (Rows{{"a", "b"}, {"c", "d"}}));
  EXPECT_EQ(out.lines, (std::vector<int64_t>{3, 6}));
  EXPECT_EQ(read("\xef\xbb\xbf\"a\",b").rows, (Rows{{"a", "b"}}));
}

TEST(Csv, CarriageReturnsBelongToTheLineEndOnly) {
  EXPECT_EQ(read("a\rb,c\r\r\nd,\r\n").rows, (Rows{{"a\rb", "c\r"}, {"d", ""}}));
  EXPECT_EQ(read("a,b\r").rows, (Rows{{"a", "b"}}));
  EXPECT_EQ(read("a,\"b\"\r").rows, (Rows{{"a", "b"}}));
  EXPECT_EQ(read("\r").rows, Rows{});
}

TEST(Csv, LinesOfQuotedNewlinesAreCounted) {
  const Read out = read("a,\"1\n2\n3\"\nb,x\n\"\r\n\",\"\n\"\nc,d\n");
  EXPECT_EQ(out.lines, (std::vector<int64_t>{1, 4, 5, 8}));
}

TEST(Csv, WithoutQuotingAQuoteIsACharacter) {
  const CsvOptions tsv{'\t', false};
  EXPECT_EQ(read("\"a\t\"b\"\tc,d\n\"\n", tsv).rows, (Rows{{"\"a", "\"b\"", "c,d"}, {"\""}}));
  EXPECT_EQ(read("5\" pipe,b\"\"\n").rows, (Rows{{"5\" pipe", "b\"\""}}));
  EXPECT_EQ(read("a;\"b;c\"", {';', true}).rows, (Rows{{"a", "b;c"}}));
}

TEST(Csv, WhatItCannotReadHasALine) {
  EXPECT_EQ(error_of("a,b\nc,\"d\n\n"),
            "f.csv:2: a quote is opened in this record and never closed; a quote within a quoted "
            "field is written twice");
  EXPECT_EQ(error_of("a,b\n\"x\ny\"z,d\n"),
            "f.csv:3: \"z,d?\" follows a closing quote; a quote within a quoted field is written "
            "twice");
  EXPECT_EQ(error_of("a,b\r\nc,caf\xe9\r\n"),
            "f.csv:2: the byte 0xe9 is not UTF-8; save the text as UTF-8");
  EXPECT_EQ(error_of("a,b\nc,d\n\ne,\0"s),
            "f.csv:4: a zero byte; the file is damaged, or is not text in UTF-8");
  EXPECT_EQ(error_of("\0\xff"s).find("f.csv:1: a zero byte"), 0u);
  EXPECT_EQ(error_of("\xff\xfe" + "a\0"s).find("f.csv:1: the text is UTF-16"), 0u);
}

// Random tables, written by the rules of RFC 4180 in all the ways that it allows.
TEST(Csv, AnyTableComesBack) {
  Random random(3, RandomSite::initialise);
  const std::string alphabet[] = {"a", ",", ";", "\t", "\"", "\n", "\r\n", " ", "é", "𝄞", "\r"};
  for (int round = 0; round < 2000; ++round) {
    const char separator = ",;\t"[random.below(3)];
    const std::string line_end = random.below(2) ? "\n" : "\r\n";
    std::string content = random.below(3) ? "" : "\xef\xbb\xbf";
    Rows rows(random.below(5));
    const auto columns = 1 + random.below(4);
    for (auto& row : rows) {
      for (uint64_t i = 0; i < columns; ++i) {
        std::string field, quoted;
        for (auto n = random.below(5); n > 0; --n) field += alphabet[random.below(11)];
        for (const char c : field) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
        // Alone in its row, an empty field without quotes would be an empty line.
        const bool must = columns == 1 || field.find_first_of(",;\t\"\r\n") != field.npos;
        if (i > 0) content += separator;
        content += must || random.below(2) ? "\"" + quoted + "\"" : field;
        row.push_back(field);
      }
      if (&row != &rows.back() || random.below(2)) content += line_end;
      if (!random.below(4) && content.ends_with("\n")) content += line_end;
    }
    ASSERT_EQ(read(content, {separator, true}).rows, rows) << content;
  }
}

TEST(CsvTable, ColumnsHaveNames) {
  const std::string content = "id, text ,label\n1,\"a\nb\",x\n";
  CsvTable table(content, "f.csv");
  EXPECT_EQ(table.columns(), (std::vector<std::string>{"id", "text", "label"}));
  EXPECT_EQ(table.column("label", "task.label"), 2u);
  EXPECT_TRUE(table.has_column("text"));
  EXPECT_FALSE(table.has_column("txt"));
  std::vector<std::string_view> row;
  ASSERT_TRUE(table.next(row));
  EXPECT_EQ(row[1], "a\nb");
  EXPECT_FALSE(table.next(row));

  EXPECT_EQ(table_error(content, [](CsvTable& t) { t.column("lable", "task.label"); }),
            "f.csv:1: there is no column \"lable\" (task.label); did you mean \"label\"? The "
            "columns are \"id\", \"text\", \"label\"");
  EXPECT_EQ(table_error("\n\na,a\n", [](CsvTable& t) { t.column("a", "task.label"); }),
            "f.csv:3: 2 columns are called \"a\" (task.label); give them different names");
  EXPECT_EQ(table_error("\n"), "f.csv:1: the file is empty; its first line must name the columns");
}

TEST(CsvTable, RowsHaveTheColumnsOfTheHeader) {
  const auto read_all = [](CsvTable& table) {
    for (std::vector<std::string_view> row; table.next(row);) {
    }
  };
  EXPECT_EQ(table_error("a,b,c,d\n1,2,3,4\n\n1,2,3,4,5\n", read_all),
            "f.csv:4: 5 columns, the header has 4");
  EXPECT_EQ(table_error("a,b\n\"1\n\",2\n1\n", read_all), "f.csv:4: 1 columns, the header has 2");
}

TEST(CsvTable, NumbersAreFiniteNumbers) {
  const std::string content = "a,temp\n1, 2.5 \nx,NaN\n1,1e39\n";
  CsvTable table(content, "f.csv");
  std::vector<std::string_view> row;
  ASSERT_TRUE(table.next(row));
  EXPECT_EQ(table.number(row[1], 1), 2.5);
  EXPECT_EQ(table.value(row[1], 1), 2.5f);
  ASSERT_TRUE(table.next(row));
  EXPECT_EQ(test::message_of<std::runtime_error>([&] { table.number(row[1], 1); }),
            "f.csv:3: column \"temp\": \"NaN\" where a number belongs; fill in missing values "
            "first");
  EXPECT_EQ(test::message_of<std::runtime_error>([&] { table.value(row[0], 0); }),
            "f.csv:3: column \"a\": \"x\" is not a number");
  ASSERT_TRUE(table.next(row));
  EXPECT_EQ(table.number(row[1], 1), 1e39);
  EXPECT_EQ(test::message_of<std::runtime_error>([&] { table.value(row[1], 1); }),
            "f.csv:4: column \"temp\": \"1e39\" is out of the range of single precision; scale "
            "the values");
}

TEST(CsvTable, TheSeparatorShowsInTheHeader) {
  EXPECT_EQ(guess_separator("a,b,c\n;;;;"), ',');
  EXPECT_EQ(guess_separator("a;b\n"), ';');
  EXPECT_EQ(guess_separator("a\tb"), '\t');
  EXPECT_EQ(guess_separator("a"), ',');
  EXPECT_EQ(guess_separator(""), ',');
}

}  // namespace
}  // namespace rotrnn
