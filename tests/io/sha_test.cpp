#include "rotrnn/io/sha.h"

#include <gtest/gtest.h>

#include "rotrnn/io/atomic_file.h"
#include "tests/support/folder.h"

namespace rotrnn {
namespace {

// The examples of FIPS 180-4.
constexpr const char* kTwoBlocks = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";

TEST(Sha, PublishedSums) {
  EXPECT_EQ(sha1_hex("abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
  EXPECT_EQ(sha1_hex(""), "da39a3ee5e6b4b0d3255bfef95601890afd80709");
  EXPECT_EQ(sha1_hex(kTwoBlocks), "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex(kTwoBlocks),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

TEST(Sha, FilesOfMoreThanAPiece) {
  const test::Folder folder;
  write_file_atomically(folder / "a", std::string(1'000'000, 'a'));  // FIPS 180-4 too
  EXPECT_EQ(sha1_of_file(folder / "a"), "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
  EXPECT_EQ(sha256_of_file(folder / "a"),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  const std::string large = std::string(3'333'333, 'x') + "end";
  write_file_atomically(folder / "b", large);
  EXPECT_EQ(sha256_of_file(folder / "b"), sha256_hex(large));
  write_file_atomically(folder / "empty", "");
  EXPECT_EQ(sha1_of_file(folder / "empty"), sha1_hex(""));
}

TEST(Sha, UnreadableFilesAreNamed) {
  const test::Folder folder;
  for (const auto& path : {folder / "missing", folder.path()}) {
    const auto message = test::message_of<std::runtime_error>([&] { sha256_of_file(path); });
    EXPECT_EQ(message.find(path.string() + ": cannot read: "), 0u) << message;
  }
}

}  // namespace
}  // namespace rotrnn
