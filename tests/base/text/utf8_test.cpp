#include "rotrnn/base/text/utf8.h"

#include <gtest/gtest.h>

#include <array>

#include "rotrnn/base/text/text_place.h"
#include "tests/support/folder.h"

namespace rotrnn {
namespace {

using namespace std::string_literals;

constexpr auto npos = std::string_view::npos;

// The arithmetic of the definition, without tables: any lead, then the number must need that
// length.
bool well_formed(const std::string& s) {
  const auto b = [&](size_t i) { return static_cast<uint32_t>(static_cast<uint8_t>(s[i])); };
  for (size_t i = 0; i < s.size();) {
    size_t more = 0;
    uint32_t code = 0, least = 0;
    if (b(i) < 0x80)
      code = b(i);
    else if (b(i) / 32 == 6)
      more = 1, code = b(i) % 32, least = 0x80;
    else if (b(i) / 16 == 14)
      more = 2, code = b(i) % 16, least = 0x800;
    else if (b(i) / 8 == 30)
      more = 3, code = b(i) % 8, least = 0x10000;
    else
      return false;
    for (size_t k = 1; k <= more; ++k) {
      if (i + k >= s.size() || b(i + k) / 64 != 2) return false;
      code = code * 64 + b(i + k) % 64;
    }
    if (code < least || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) return false;
    i += more + 1;
  }
  return true;
}

TEST(Utf8, KnownTexts) {
  EXPECT_EQ(decode_utf8("", "f").size(), 0u);
  const std::string text = "aé€𝄞\0z"s;  // the bytes of this source file
  EXPECT_EQ(text, "a\xc3\xa9\xe2\x82\xac\xf0\x9d\x84\x9e\0z"s);
  EXPECT_EQ(decode_utf8(text, "f"), (std::vector<char32_t>{'a', 0xe9, 0x20ac, 0x1d11e, 0, 'z'}));
  EXPECT_EQ(find_not_utf8(text), npos);
}

TEST(Utf8, EveryCodePointThereAndBack) {
  std::string all;
  std::vector<char32_t> codes;
  for (char32_t c = 0; c <= 0x10ffff; ++c) {
    if (c >= 0xd800 && c <= 0xdfff) continue;
    codes.push_back(c);
    append_utf8(all, c);
  }
  // 128 of one byte, 1,920 of two, 63,488 less the surrogates of three, 2^20 of four.
  EXPECT_EQ(all.size(), 128u + 2 * 1920 + 3 * (63488 - 2048) + 4 * 1048576);
  EXPECT_EQ(find_not_utf8(all), npos);
  EXPECT_EQ(decode_utf8(all, "f"), codes);
}

TEST(Utf8, EveryShortStringIsJudgedAsTheDefinitionSays) {
  int64_t good = 0;
  for (uint32_t n = 0; n < 1u << 24; ++n) {
    const std::array<char, 3> s{static_cast<char>(n >> 16), static_cast<char>(n >> 8),
                                static_cast<char>(n)};
    good += find_not_utf8({s.data(), 3}) == npos;
  }
  EXPECT_EQ(good, 128 * 128 * 128 + 2 * 128 * 1920 + 61440);
  // Four bytes: every lead and second byte, the rest at the edges of their range.
  for (uint32_t n = 0; n < 1u << 16; ++n) {
    for (const char third : {'\x7f', '\x80', '\xbf', '\xc0'}) {
      for (const char fourth : {'\x00', '\x80', '\xbf', '\xff'}) {
        const std::string s{static_cast<char>(n >> 8), static_cast<char>(n), third, fourth};
        ASSERT_EQ(find_not_utf8(s) == npos, well_formed(s)) << n << " " << int{third};
      }
    }
  }
}

TEST(Utf8, TheFirstBadByteIsFound) {
  EXPECT_EQ(find_not_utf8("\xc0\xaf"), 0u);              // overlong '/'
  EXPECT_EQ(find_not_utf8("ab\xe0\x80\xaf"), 2u);        // overlong
  EXPECT_EQ(find_not_utf8("\xc3\xa9\xed\xa0\x80"), 2u);  // a surrogate
  EXPECT_EQ(find_not_utf8("\xf4\x90\x80\x80"), 0u);      // 110000
  EXPECT_EQ(find_not_utf8("\xf0\x9d\x84"), 0u);          // cut off
  EXPECT_EQ(find_not_utf8("\xf0\x9d\x84z"), 0u);
  // At any distance from the blocks of ASCII that are skipped.
  for (size_t before = 0; before < 40; ++before) {
    for (const std::string bad : {"\x80", "\xff", "\xe9t\xe9"}) {
      const std::string text = std::string(before, 'x') + bad + std::string(20, 'y');
      EXPECT_EQ(find_not_utf8(text), before);
    }
  }
  EXPECT_EQ(test::message_of<std::runtime_error>([] { decode_utf8("caf\xe9", "f.txt"); }),
            "f.txt: offset 3: the byte 0xe9 is not UTF-8; save the text as UTF-8");
  EXPECT_EQ(not_utf8_message("\xff\xfe\x61\x00"s, 0), "the text is UTF-16; save it as UTF-8");
}

TEST(Utf8, TheByteOrderMarkGoes) {
  EXPECT_EQ(without_bom("\xef\xbb\xbfx\xef\xbb\xbf"), "x\xef\xbb\xbf");
  EXPECT_EQ(without_bom("\xef\xbb"), "\xef\xbb");
  EXPECT_EQ(without_bom(""), "");
}

TEST(TextPlace, ExcerptsFitALineAndATerminal) {
  EXPECT_EQ(excerpt("abc"), "\"abc\"");
  EXPECT_EQ(excerpt("a\n\x1b[2J\x80\xc2\x85é"), "\"a??[2J??é\"");
  EXPECT_EQ(excerpt(std::string(41, 'x')), "\"" + std::string(40, 'x') + "...\"");
  std::string long_text;
  for (int i = 0; i < 50; ++i) long_text += "é";
  EXPECT_EQ(excerpt(long_text).size(), 2u + 80 + 3);
  EXPECT_EQ(test::message_of<std::runtime_error>([] {
              TextPlace{"f.csv", 7}.fail("what");
            }),
            "f.csv:7: what");
}

}  // namespace
}  // namespace rotrnn
