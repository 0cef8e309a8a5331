#include "rotrnn/io/files.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>

#include "rotrnn/base/random.h"
#include "rotrnn/io/archive.h"
#include "rotrnn/io/atomic_file.h"
#include "tests/support/archive.h"
#include "tests/support/folder.h"
#include "tests/support/idx.h"

namespace rotrnn {
namespace {

namespace fs = std::filesystem;
using test::Files;

std::string noise(int64_t size, uint64_t seed) {
  Random random(seed, RandomSite::initialise);
  std::string bytes;
  for (int64_t i = 0; i < size; ++i) bytes += static_cast<char>(random.below(256));
  return bytes;
}

// Not in the order of their names.
const Files& files() {
  static const Files value{{"set/b/2.bin", noise(1'200'000, 1)},
                           {"set/b/", ""},
                           {"set/a/1.txt", "one\n"},
                           {"set/empty", ""},
                           {"set/ä ö.txt", "umlauts"},
                           {"set/b/0.txt", noise(512, 2)}};
  return value;
}

Files only_files(const Files& all) {
  Files out;
  for (const auto& file : all) {
    if (!file.first.ends_with('/')) out.push_back(file);
  }
  return out;
}

bool all(const std::string&) {
  return true;
}

Files read_all(const fs::path& path, int64_t limit = kMaxFileBytes) {
  Files out;
  visit_files(
      path, all,
      [&](const std::string& name, std::string_view bytes) { out.emplace_back(name, bytes); },
      limit);
  return out;
}

std::string error_of(const fs::path& path) {
  return test::message_of<std::runtime_error>([&] { read_all(path); });
}

void expect_contains(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "\"" << text << "\" lacks \"" << part << "\"";
}

TEST(Files, ArchivesOfEveryKindGiveTheirFilesInOrder) {
  const test::Folder folder;
  for (const char* name : {"a.tar", "a.tar.gz", "a.tgz", "a.tar.bz2", "a.tar.xz", "a.zip"}) {
    SCOPED_TRACE(name);
    test::write_archive(folder / name, files());
    EXPECT_EQ(read_all(folder / name), only_files(files()));
    EXPECT_TRUE(is_archive(folder / name));
    // The content decides, not the name.
    fs::rename(folder / name, folder / "download");
    EXPECT_EQ(read_all(folder / "download"), only_files(files()));
    std::vector<std::string> names;
    for (const auto& [file, bytes] : only_files(files())) names.push_back(file);
    EXPECT_EQ(list_files(folder / "download"), names);
  }
}

TEST(Files, AFolderGivesThemSorted) {
  const test::Folder folder;
  test::write_files(folder.path(), files());
  Files sorted = only_files(files());
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(read_all(folder.path()), sorted);
  EXPECT_EQ(list_files(folder.path()).size(), sorted.size());
  EXPECT_FALSE(is_archive(folder.path()));
  EXPECT_FALSE(is_archive(folder / "set/a/1.txt"));
  EXPECT_FALSE(is_archive(folder / "missing"));
}

TEST(Files, OnlyWantedFilesAreRead) {
  const test::Folder folder;
  test::write_archive(folder / "a.tgz", files());
  test::write_files(folder / "f", files());
  for (const char* path : {"a.tgz", "f"}) {
    std::vector<std::string> seen;
    visit_files(
        folder / path, [](const std::string& name) { return name.ends_with(".txt"); },
        [&](const std::string& name, std::string_view) { seen.push_back(name); });
    std::sort(seen.begin(), seen.end());
    EXPECT_EQ(seen, (std::vector<std::string>{"set/a/1.txt", "set/b/0.txt", "set/ä ö.txt"}));
  }
}

std::string read_in_pieces(const ReadBytes& read, size_t piece_size) {
  std::string bytes, piece(piece_size, '\0');
  size_t size = 0;
  do {
    size = read(piece.data(), piece.size());
    bytes.append(piece, 0, size);
  } while (size == piece.size());
  return bytes;
}

TEST(Files, StreamsInPieces) {
  const test::Folder folder;
  test::write_archive(folder / "a.tgz", files());
  test::write_files(folder / "f", files());
  for (const char* path : {"a.tgz", "f"}) {
    std::string bytes;
    int visits = 0;
    stream_files(folder / path, all, [&](const std::string& name, const ReadBytes& read) {
      ++visits;
      if (name == "set/ä ö.txt") return;  // not read at all
      if (name != "set/b/2.bin") {
        char one = 0;  // or in part
        read(&one, 1);
        return;
      }
      bytes = read_in_pieces(read, 700'001);
    });
    EXPECT_EQ(visits, 5);
    EXPECT_EQ(bytes, files()[0].second) << path;
  }
}

TEST(Files, StreamsOneFileUnpacked) {
  const test::Folder folder;
  for (const std::string& text :
       {std::string(), std::string("\x1f"), std::string("ab"), noise(100'000, 3)}) {
    for (const std::string& bytes : {text, test::gzipped(text)}) {
      write_file_atomically(folder / "file", bytes);
      for (const size_t piece : {1, 3, 4096, 200'000}) {
        std::string seen;
        stream_unpacked(folder / "file",
                        [&](const ReadBytes& read) { seen = read_in_pieces(read, piece); });
        EXPECT_EQ(seen, text) << bytes.size() << " bytes in pieces of " << piece;
      }
    }
  }
  const std::string packed = test::gzipped(noise(100'000, 4));
  write_file_atomically(folder / "cut.gz", packed.substr(0, packed.size() / 2));
  EXPECT_NE(test::message_of<std::runtime_error>([&] {
              stream_unpacked(folder / "cut.gz",
                              [](const ReadBytes& read) { read_in_pieces(read, 4096); });
            }).find("cut.gz: packed offset"),
            std::string::npos);
}

TEST(Files, NamesInFrontOfAndBelowFolders) {
  EXPECT_EQ(name_tail("aclImdb/train/pos/0_9.txt", 3), "train/pos/0_9.txt");
  EXPECT_EQ(name_tail("train/pos/0_9.txt", 3), "train/pos/0_9.txt");
  EXPECT_EQ(name_tail("pos/0_9.txt", 3), "");
  EXPECT_EQ(name_tail("a/b.bin", 1), "b.bin");
  EXPECT_EQ(name_tail("b.bin", 1), "b.bin");
  EXPECT_EQ(name_tail("", 2), "");
  EXPECT_EQ(common_folder({"a/b/c", "a/b/d/e"}), "a/b/");
  EXPECT_EQ(common_folder({"a/bc/1", "a/bd/1"}), "a/");
  EXPECT_EQ(common_folder({"a/1", "b/1"}), "");
  EXPECT_EQ(common_folder({"a/1"}), "a/");
  EXPECT_EQ(common_folder({"1"}), "");
  EXPECT_EQ(common_folder({}), "");
  EXPECT_TRUE(is_hidden(".DS_Store"));
  EXPECT_TRUE(is_hidden("a/._1.wav"));
  EXPECT_TRUE(is_hidden("__MACOSX/a/1.wav"));
  EXPECT_FALSE(is_hidden("a/1.wav"));
  EXPECT_EQ(file_label("x.tgz", "a/b"), "x.tgz: entry a/b");
  EXPECT_EQ(file_label("/tmp", "a/b"), "/tmp/a/b");
}

TEST(Files, DotsInFrontAreDropped) {
  const test::Folder folder;
  write_file_atomically(
      folder / "a.tar",
      test::tar_bytes({{"./", ""}, {"./a/1", "x"}, {".//./b", "y"}, {".c", "z"}}));
  EXPECT_EQ(read_all(folder / "a.tar"), (Files{{"a/1", "x"}, {"b", "y"}, {".c", "z"}}));
}

TEST(Files, LinksAndSpecialFiles) {
  const test::Folder folder;
  test::write_files(folder / "f", {{"d/1", "one"}, {"d/2", "two"}});
  fs::create_symlink("1", folder / "f/d/link");
  fs::create_directory_symlink("..", folder / "f/d/up");  // a circle
  fs::create_directory_symlink("d", folder / "f/same");   // no circle
  fs::create_symlink("nowhere", folder / "f/d/dangling");
  ASSERT_EQ(::mkfifo((folder / "f/d/pipe").c_str(), 0600), 0);  // would be waited for forever
  EXPECT_EQ(list_files(folder / "f"),
            (std::vector<std::string>{"d/1", "d/2", "d/link", "same/1", "same/2", "same/link"}));

  const std::string bytes = test::tar_entry("1", "one") +
                            test::tar_entry("link", "", '2', "/etc/passwd") +
                            test::tar_entry("device", "", '3') + test::tar_entry("2", "two");
  write_file_atomically(folder / "a.tar", bytes + test::tar_end());
  EXPECT_EQ(read_all(folder / "a.tar"), (Files{{"1", "one"}, {"2", "two"}}));
  write_file_atomically(folder / "hard.tar",
                        bytes + test::tar_entry("again", "", '1', "1") + test::tar_end());
  EXPECT_EQ(error_of(folder / "hard.tar"),
            (folder / "hard.tar").string() +
                ": entry again: is a hard link to 1; unpack the archive and use the folder");
}

// Cut anywhere: every byte of a small archive, of every kind.
TEST(Files, CutArchivesAreErrors) {
  const test::Folder folder;
  const Files small{{"a/1", noise(700, 3)}, {"a/2", noise(20, 4)}, {"a/3", ""}};
  for (const char* name : {"a.tar", "a.tar.gz", "a.tar.bz2", "a.tar.xz", "a.zip"}) {
    test::write_archive(folder / name, small);
    const std::string whole = read_file(folder / name);
    ASSERT_EQ(read_all(folder / name), small);
    // A tar is padded with empty blocks, of which one is enough.
    const size_t content = name == std::string("a.tar") ? 512 * (3 + 2 + 1 + 1) : whole.size();
    const size_t step = 11;  // and every byte at the end
    for (size_t size = 0; size < content; size += size + 2 * step < content ? step : 1) {
      test::write_files(folder.path(), {{"cut", whole.substr(0, size)}});  // without fsync
      const std::string error = error_of(folder / "cut");
      ASSERT_NE(error.find("cut: "), std::string::npos)
          << name << " cut to " << size << ": " << error;
    }
  }
  // Between two entries.
  const std::string first = test::tar_entry("a/1", "one");
  write_file_atomically(folder / "cut.tar", first);
  expect_contains(error_of(folder / "cut.tar"), "cut.tar: entry a/1: nothing follows");
  // Within an entry: it is named.
  write_file_atomically(folder / "cut.tar", first + test::tar_entry("a/2", "two").substr(0, 514));
  expect_contains(error_of(folder / "cut.tar"), "cut.tar: entry a/2: ");
  expect_contains(error_of(folder / "cut.tar"), "cut off or damaged, get it again");
}

TEST(Files, DamageIsAnError) {
  const test::Folder folder;
  for (const char* name : {"a.tar.gz", "a.tar.bz2", "a.tar.xz", "a.zip"}) {
    test::write_archive(folder / name, {{"a/1", noise(5000, 5)}, {"a/2", noise(50'000, 6)}});
    std::string bytes = read_file(folder / name);
    bytes[bytes.size() / 2] ^= 0x10;  // in the middle of the second file
    write_file_atomically(folder / name, bytes);
    SCOPED_TRACE(name);
    expect_contains(error_of(folder / name), name);
  }
  // One bit of a stored file: only the checksum of gzip at the very end shows it.
  std::string packed = test::gzipped(test::tar_bytes({{"a/1", noise(5000, 7)}}));
  packed[packed.size() - 6] ^= 1;
  write_file_atomically(folder / "sum.tgz", packed);
  expect_contains(error_of(folder / "sum.tgz"), "incorrect data check");
}

TEST(Files, WhatIsNoArchive) {
  const test::Folder folder;
  write_file_atomically(folder / "text", "just a text, and not a short one\n");
  expect_contains(error_of(folder / "text"), "text: not a whole tar or zip archive");
  write_file_atomically(folder / "empty", "");
  expect_contains(error_of(folder / "empty"), "empty: not a whole tar or zip archive");
  write_file_atomically(folder / "one.gz", test::gzipped("one file"));
  expect_contains(error_of(folder / "one.gz"), "one.gz: not a whole tar or zip archive");
  EXPECT_FALSE(is_archive(folder / "one.gz"));
  expect_contains(error_of(folder / "missing"), "missing: there is no such folder or archive");
}

// Zeros pack well: what an archive unpacks to is found out without making it.
TEST(Files, LargeFilesAreRefused) {
  const test::Folder folder;
  test::write_archive(folder / "a.zip", {{"fine", "x"}, {"zeros", std::string(5'000'000, '\0')}});
  EXPECT_EQ(read_all(folder / "a.zip", 5'000'000).size(), 2u);
  const auto refuse = [&](const fs::path& path, int64_t limit) {
    return test::message_of<std::runtime_error>([&] { read_all(path, limit); });
  };
  expect_contains(refuse(folder / "a.zip", 4'999'999),
                  "a.zip: entry zeros: more than 4999999 bytes");
  test::write_files(folder / "f", {{"zeros", std::string(5000, '\0')}});
  expect_contains(refuse(folder / "f", 4999), "f/zeros: more than 4999 bytes");
  // A zip that claims 10 bytes and holds 5 MB is stopped at the limit too.
  std::string lie = read_file(folder / "a.zip");
  const std::string size("\x40\x4b\x4c\x00", 4), small("\x0a\x00\x00\x00", 4);
  size_t lies = 0;
  for (size_t at; (at = lie.find(size)) != std::string::npos; ++lies) lie.replace(at, 4, small);
  ASSERT_GT(lies, 0u);
  write_file_atomically(folder / "lie.zip", lie);
  expect_contains(refuse(folder / "lie.zip", 100'000),
                  "lie.zip: entry zeros: more than 100000 bytes");
  // A claim takes no memory: 7 GB in the header, nothing after it.
  write_file_atomically(folder / "claim.tar",
                        test::tar_entry("big", "", '0', "", 7'000'000'000) + test::tar_end());
  expect_contains(refuse(folder / "claim.tar", kMaxFileBytes), "entry big: more than 1073741824");
  write_file_atomically(folder / "claim.tar",
                        test::tar_entry("big", "", '0', "", 1'000'000'000) + test::tar_end());
  rusage before{}, after{};
  getrusage(RUSAGE_SELF, &before);
  expect_contains(error_of(folder / "claim.tar"), "claim.tar: entry big: ");
  getrusage(RUSAGE_SELF, &after);
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 50'000) << "KB";
}

}  // namespace
}  // namespace rotrnn
