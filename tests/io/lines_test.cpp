#include "rotrnn/io/lines.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "tests/support/folder.h"

namespace rotrnn {
namespace {

using Lines = std::vector<std::string>;

ReadBytes bytes_of(const std::string& text, size_t& at) {
  return [&text, &at](char* out, size_t size) {
    const size_t count = std::min(size, text.size() - at);
    std::memcpy(out, text.data() + at, count);
    at += count;
    return count;
  };
}

Lines lines_of(const std::string& text, size_t limit = kMaxLineBytes) {
  size_t at = 0;
  const ReadBytes read = bytes_of(text, at);
  LineReader reader(read, "f", limit);
  Lines out;
  for (std::string_view line; reader.next(line);) {
    out.emplace_back(line);
    EXPECT_EQ(reader.place().line, std::ssize(out));
  }
  return out;
}

TEST(Lines, AreWhatIsBetweenTheirEnds) {
  EXPECT_EQ(lines_of(""), Lines{});
  EXPECT_EQ(lines_of("a"), Lines{"a"});
  EXPECT_EQ(lines_of("a\n"), Lines{"a"});
  EXPECT_EQ(lines_of("a\r\nb"), (Lines{"a", "b"}));
  EXPECT_EQ(lines_of("\n\na\rb\n\n"), (Lines{"", "", "a\rb", ""}));
}

TEST(Lines, OfAnyLengthInPieces) {
  Lines expected;
  std::string text;
  for (const size_t size : {0, 1, 262'143, 262'144, 262'145, 5, 1'000'000, 3, 700'000}) {
    expected.emplace_back(size, static_cast<char>('a' + expected.size()));
    text += expected.back() + "\n";
  }
  EXPECT_EQ(lines_of(text), expected);
}

TEST(Lines, LongerThanTheLimitAreErrors) {
  const std::string text = "short\n" + std::string(2'000'000, 'x');
  EXPECT_EQ(lines_of(text).size(), 2u);
  EXPECT_EQ(test::message_of<std::runtime_error>([&] { lines_of(text, 1'000'000); }),
            "f:2: the line is longer than 1000000 bytes; is it a file of another kind?");
}

}  // namespace
}  // namespace rotrnn
