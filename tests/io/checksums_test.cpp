#include "rotrnn/io/checksums.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "tests/support/folder.h"

namespace rotrnn {
namespace {

using test::message_of;

// By sha256sum of coreutils, of "abc" and of an empty file.
constexpr char kAbc[] = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
constexpr char kNothing[] = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
const std::string kText = std::string(kAbc) + "  a.json\n" + kNothing + "  b.safetensors\n";

TEST(Checksums, AreThoseOfSha256sum) {
  const Checksums sums = parse_checksums(kText, "SHA256SUMS");
  EXPECT_EQ(sums, (Checksums{{"a.json", kAbc}, {"b.safetensors", kNothing}}));
  EXPECT_EQ(checksums_text(sums), kText);
  EXPECT_NO_THROW(check_sum(sums, "x/a.json", "abc"));
  EXPECT_NO_THROW(check_sum(sums, "x/b.safetensors", ""));
  const auto wrong = message_of<std::runtime_error>([&] { check_sum(sums, "x/a.json", "abd"); });
  EXPECT_TRUE(wrong.starts_with("x/a.json: damaged")) << wrong;
  const auto other = message_of<std::runtime_error>([&] { check_sum(sums, "x/c.json", "abc"); });
  EXPECT_TRUE(other.starts_with("x/c.json: is not listed")) << other;
}

// A list in which any bit is another is refused, or no longer fits the files.
TEST(Checksums, EveryBitCounts) {
  for (size_t i = 0; i < kText.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string changed = kText;
      changed[i] = static_cast<char>(changed[i] ^ (1 << bit));
      EXPECT_THROW(
          {
            const Checksums sums = parse_checksums(changed, "SHA256SUMS");
            check_sum(sums, "a.json", "abc");
            check_sum(sums, "b.safetensors", "");
          },
          std::runtime_error)
          << "byte " << i << " bit " << bit;
    }
    EXPECT_THROW(check_sum(parse_checksums(kText.substr(0, i), "SHA256SUMS"), "b.safetensors", ""),
                 std::runtime_error)
        << "cut at " << i;
  }
}

TEST(Checksums, OnlyPlainNamesInOrder) {
  const std::string abc = kAbc;
  for (const std::string& text :
       {abc + "  ../a\n", abc + "  a/b\n", abc + " *a\n", abc + "  \n", abc + "  a\r\n",
        kText + "\n", abc + "  b\n" + abc + "  a\n", abc + "  a\n" + kNothing + "  a\n"}) {
    EXPECT_THROW(parse_checksums(text, "SHA256SUMS"), std::runtime_error) << text;
  }
  EXPECT_TRUE(parse_checksums("", "SHA256SUMS").empty());
}

}  // namespace
}  // namespace rotrnn
