#include "rotrnn/io/formats/idx.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "rotrnn/base/random.h"
#include "rotrnn/io/atomic_file.h"
#include "tests/support/folder.h"
#include "tests/support/idx.h"

namespace rotrnn {
namespace {

using namespace std::string_literals;
using test::gzipped;
using test::idx_bytes;

std::string error_of(const std::string& bytes, size_t dimensions) {
  return test::message_of<std::runtime_error>([&] { parse_idx(bytes, "f.idx", dimensions); });
}

void expect_contains(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "\"" << text << "\" lacks \"" << part << "\"";
}

TEST(Idx, ReadsThePublishedForm) {
  // The first bytes of the published test labels: magic 0x00000801, 10,000 of them, then 7, 2, 1.
  const std::string labels =
      "\0\0\x08\x01\0\0\x27\x10"s + "\x07\x02\x01"s + std::string(9997, '\0');
  const IdxArray array = parse_idx(labels, "f", 1);
  EXPECT_EQ(array.shape, std::vector<int64_t>{10000});
  ASSERT_EQ(array.data.size(), 10000u);
  EXPECT_EQ(array.data[0], 7);
  EXPECT_EQ(array.data[2], 1);

  const IdxArray images =
      parse_idx("\0\0\x08\x03\0\0\0\x02\0\0\0\x01\0\0\0\x03"s + "abc\xff\0z"s, "f", 3);
  EXPECT_EQ(images.shape, (std::vector<int64_t>{2, 1, 3}));
  EXPECT_EQ(images.data, (std::vector<uint8_t>{'a', 'b', 'c', 255, 0, 'z'}));
}

TEST(Idx, PackedIsThePlainFile) {
  Random random(1, RandomSite::initialise);
  std::string data;
  for (int i = 0; i < 200'000; ++i) data += static_cast<char>(random.below(i < 100'000 ? 256 : 2));
  const std::string plain = idx_bytes({2, 100, 1000}, data);
  const IdxArray a = parse_idx(plain, "f", 3), b = parse_idx(gzipped(plain), "f.gz", 3);
  EXPECT_EQ(a.shape, b.shape);
  EXPECT_EQ(std::string(a.data.begin(), a.data.end()), data);
  EXPECT_EQ(a.data, b.data);
  // Members in a row, as `cat a.gz b.gz` makes them, are one stream; cut within the header too.
  for (const size_t cut : {3, 10, 77'777}) {
    const auto parts = gzipped(plain.substr(0, cut)) + gzipped("") + gzipped(plain.substr(cut));
    EXPECT_EQ(parse_idx(parts, "f.gz", 3).data, a.data);
  }
  const test::Folder folder;
  write_file_atomically(folder / "f.gz", gzipped(plain));
  EXPECT_EQ(read_idx(folder / "f.gz", 3).data, a.data);
}

TEST(Idx, EmptyArraysAreArrays) {
  EXPECT_EQ(parse_idx(idx_bytes({0}, ""), "f", 1).data.size(), 0u);
  EXPECT_EQ(parse_idx(gzipped(idx_bytes({7, 0, 28}, "")), "f", 3).shape[0], 7);
}

TEST(Idx, EveryFieldOfTheHeaderIsChecked) {
  EXPECT_EQ(error_of("\0\0"s, 1),
            "f.idx: offset 2: the file ends within the header; is the download complete?");
  expect_contains(error_of("", 1), "offset 0: the file ends");
  expect_contains(error_of("PK\3\4"s, 1), "offset 0: the file starts with 50 4b");
  expect_contains(error_of("\0\1\x08\1\0\0\0\0"s, 1), "offset 0: the file starts with 00 01");
  expect_contains(error_of("\0\0\x0d\1\0\0\0\1abcd"s, 1),
                  "offset 2: type code 0x0d, 32-bit floats");
  expect_contains(error_of("\0\0\x07\1\0\0\0\1a"s, 1), "offset 2: type code 0x07;");
  expect_contains(error_of(idx_bytes({2}, "ab"), 3), "offset 3: 1 dimensions, expected 3");
  expect_contains(error_of("\0\0\x08\xff"s, 3), "offset 3: 255 dimensions");
  expect_contains(error_of(idx_bytes({2, 1, 1}, "ab").substr(0, 13), 3),
                  "offset 13: the file ends");
}

TEST(Idx, ThePayloadHasTheExactLength) {
  const std::string whole = idx_bytes({2, 3, 4}, std::string(24, 'x'));
  EXPECT_NO_THROW(parse_idx(whole, "f", 3));
  expect_contains(error_of(whole.substr(0, 39), 3), "offset 4: the header promises 2 × 3 × 4");
  EXPECT_EQ(error_of(whole + "y", 3).find("f.idx: offset 40: bytes after"), 0u);
  EXPECT_EQ(error_of(gzipped(whole + "y"), 3).find("f.idx: unpacked offset 40: bytes after"), 0u);
  expect_contains(error_of(gzipped(whole.substr(0, 39)), 3), "offset 39: the file ends after 23");
}

TEST(Idx, AbsurdSizesTakeNoMemory) {
  const uint32_t most = 0xffffffff;
  for (const auto& shape : std::vector<std::vector<uint32_t>>{
           {most, most, most}, {most, 1, 1}, {1u << 31, 1u << 31, 4}, {65536, 65536, 65536}}) {
    expect_contains(error_of(idx_bytes(shape, "abc"), 3), "offset 4: the header promises");
    expect_contains(error_of(gzipped(idx_bytes(shape, "abc")), 3), "offset 4: the header promises");
  }
  // Packed data of 1.5 MB may hold 1.5 GB, so these have to be read to be found wrong.
  Random random(2, RandomSite::initialise);
  std::string noise;
  for (int i = 0; i < 1'500'000; ++i) noise += static_cast<char>(random.below(256));
  const std::string packed = gzipped(idx_bytes({1'500'000'000}, noise));
  rusage before{}, after{};
  getrusage(RUSAGE_SELF, &before);
  expect_contains(error_of(packed, 1), "the file ends after 1500000 of the 1500000000 values");
  getrusage(RUSAGE_SELF, &after);
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 100'000) << "KB";
}

TEST(Idx, DamagedGzipIsAnError) {
  std::string data;
  for (int i = 0; i < 5000; ++i) data += static_cast<char>(i * i / 7);
  const std::string packed = gzipped(idx_bytes({5000}, data));
  // Cut anywhere, also within the checksum at the end.
  for (size_t size = 2; size < packed.size(); size += size + 12 < packed.size() ? 11 : 1) {
    expect_contains(error_of(packed.substr(0, size), 1), "f.idx: ");
  }
  expect_contains(error_of(packed.substr(0, packed.size() - 1), 1), "the gzip data end too early");
  std::string wrong_sum = packed;
  wrong_sum[packed.size() - 8] ^= 1;
  expect_contains(error_of(wrong_sum, 1), "damaged gzip data (incorrect data check)");
  std::string wrong_middle = packed;
  wrong_middle[packed.size() / 2] ^= 0x10;
  error_of(wrong_middle, 1);
  expect_contains(error_of(packed + "rubbish", 1), "packed offset");
}

TEST(Idx, MissingFilesAreNamed) {
  expect_contains(test::message_of<std::runtime_error>([] { read_idx("nowhere/x.gz", 1); }),
                  "nowhere/x.gz");
}

}  // namespace
}  // namespace rotrnn
