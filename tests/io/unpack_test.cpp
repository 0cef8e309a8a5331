#include "rotrnn/io/unpack.h"

#include <gtest/gtest.h>

#include "rotrnn/io/atomic_file.h"
#include "rotrnn/io/files.h"
#include "tests/support/archive.h"
#include "tests/support/folder.h"
#include "tests/support/idx.h"

namespace rotrnn {
namespace {

namespace fs = std::filesystem;
using test::Files;
using test::tar_end;
using test::tar_entry;

Files tree(const fs::path& folder) {
  Files out;
  visit_files(
      folder, [](const std::string&) { return true; },
      [&](const std::string& name, std::string_view bytes) { out.emplace_back(name, bytes); });
  return out;
}

// A folder to unpack in, with a file beside it that no archive may touch.
class Unpack : public testing::Test {
 protected:
  Unpack() { write_file_atomically(folder_ / "beside", "untouched"); }

  void expect_refused(const std::string& bytes, const std::string& part) {
    SCOPED_TRACE(part);
    write_file_atomically(folder_ / "a.tar", bytes);
    const auto message = test::message_of<std::runtime_error>(
        [&] { unpack_archive(folder_ / "a.tar", folder_ / "out"); });
    EXPECT_EQ(message.find((folder_ / "a.tar").string() + ": "), 0u) << message;
    EXPECT_NE(message.find(part), std::string::npos) << message;
    expect_nothing_else();
  }

  void expect_nothing_else() {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_.path())) {
      names.push_back(entry.path().filename().string());
    }
    std::sort(names.begin(), names.end());
    EXPECT_EQ(names, (std::vector<std::string>{"a.tar", "beside"}));
    EXPECT_EQ(read_file(folder_ / "beside"), "untouched");
  }

  test::Folder folder_;
};

TEST_F(Unpack, EveryKindGivesTheFiles) {
  const Files files{{"set/a/1.txt", "one"}, {"set/b", std::string(300'000, 'b')}, {"set/e", ""}};
  for (const char* name : {"a.tar", "a.tar.gz", "a.tar.bz2", "a.tar.xz", "a.zip"}) {
    SCOPED_TRACE(name);
    test::write_archive(folder_ / name, files);
    unpack_archive(folder_ / name, folder_ / "out");
    EXPECT_EQ(tree(folder_ / "out"), files);
    EXPECT_FALSE(fs::exists(folder_ / "out.new"));
  }
}

TEST_F(Unpack, ReplacesWhatWasThereAsAWhole) {
  test::write_files(folder_ / "out", {{"old", "old"}});
  test::write_files(folder_ / "out.new", {{"left by a kill", "x"}});
  const std::string good = test::tar_bytes({{"fresh", "fresh"}});
  write_file_atomically(folder_ / "a.tar", good.substr(0, 515));
  EXPECT_THROW(unpack_archive(folder_ / "a.tar", folder_ / "out"), std::runtime_error);
  EXPECT_EQ(tree(folder_ / "out"), (Files{{"old", "old"}}));
  EXPECT_FALSE(fs::exists(folder_ / "out.new"));
  write_file_atomically(folder_ / "a.tar", good);
  unpack_archive(folder_ / "a.tar", (folder_ / "out").string() + "/");
  EXPECT_EQ(tree(folder_ / "out"), (Files{{"fresh", "fresh"}}));
}

TEST_F(Unpack, OnlyWhatIsWanted) {
  write_file_atomically(folder_ / "a.tar",
                        test::tar_bytes({{"./a/1", "1"}, {"./b/2", "2"}, {"b/3", "3"}}));
  UnpackOptions options;
  options.wanted = [](const std::string& name) { return name.starts_with("b/"); };
  unpack_archive(folder_ / "a.tar", folder_ / "out", options);
  EXPECT_EQ(tree(folder_ / "out"), (Files{{"b/2", "2"}, {"b/3", "3"}}));
}

TEST_F(Unpack, NamesThatLeadOutAreRefused) {
  const std::string fine = tar_entry("fine", "x");
  for (const std::string name :
       {"../beside", "a/../../beside", "..", "a/b/../../../beside", "a/.."}) {
    expect_refused(fine + tar_entry(name, "evil") + tar_end(),
                   "entry " + name + ": leads out of its folder");
    expect_refused(fine + tar_entry(name + "/", "", '5') + tar_end(), ": leads out of its folder");
  }
  const std::string absolute = (folder_ / "beside").string();
  expect_refused(fine + tar_entry(absolute, "evil") + tar_end(),
                 "entry " + absolute + ": has an absolute name");
}

TEST_F(Unpack, LinksThatLeadOutAreRefused) {
  const auto link = [](const char* name, const char* to) { return tar_entry(name, "", '2', to); };
  expect_refused(link("l", "../beside") + tar_end(), "entry l: is a link to ../beside");
  expect_refused(link("l", "/etc/passwd") + tar_end(), "entry l: is a link to /etc/passwd");
  expect_refused(link("l", "l") + tar_end(), "entry l: ");
  // Written through a link: the folder out.new/l is made first, so there is no room for the link.
  expect_refused(link("l", "..") + tar_entry("l/beside", "evil") + tar_end(), "entry l: ");
  expect_refused(link("l", "../beside") + tar_entry("l", "evil") + tar_end(), "entry l: ");
  // What it says stays inside, where it leads does not.
  expect_refused(link("here", ".") + link("l", "here/../beside") + tar_end(),
                 "entry l: is a link to here/../beside");
  expect_refused(tar_entry("h", "", '1', "../beside") + tar_end(), "entry h: leads out");
  expect_refused(tar_entry("h", "", '1', (folder_ / "beside").c_str()) + tar_end(),
                 "entry h: has an absolute name");
  expect_refused(tar_entry("h", "", '1', "missing") + tar_end(),
                 "entry h: is a hard link to a file");
  expect_refused(link("l", "../beside") + tar_entry("h", "", '1', "l") + tar_end(), "entry h: ");
}

TEST_F(Unpack, LinksInsideAreKept) {
  write_file_atomically(folder_ / "a.tar", tar_entry("d/1", "one") +
                                               tar_entry("d/link", "", '2', "../d/1") +
                                               tar_entry("hard", "", '1', "d/1") + tar_end());
  unpack_archive(folder_ / "a.tar", folder_ / "out");
  EXPECT_EQ(tree(folder_ / "out"), (Files{{"d/1", "one"}, {"d/link", "one"}, {"hard", "one"}}));
  EXPECT_EQ(fs::read_symlink(folder_ / "out/d/link"), "../d/1");
}

// A later entry of a name replaces the earlier, and not by way of a hard link to it.
TEST_F(Unpack, TheLaterEntryOfANameCounts) {
  write_file_atomically(folder_ / "a.tar", tar_entry("1", "first") + tar_entry("h", "", '1', "1") +
                                               tar_entry("1", "second") + tar_end());
  unpack_archive(folder_ / "a.tar", folder_ / "out");
  EXPECT_EQ(tree(folder_ / "out"), (Files{{"1", "second"}, {"h", "first"}}));
}

TEST_F(Unpack, DevicesAreRefused) {
  for (const char type : {'3', '4', '6'}) {
    expect_refused(tar_entry("fine", "x") + tar_entry("dev", "", type) + tar_end(),
                   "entry dev: is neither file nor folder nor link");
  }
}

TEST_F(Unpack, CutAndOversizedArchivesLeaveNothing) {
  expect_refused(tar_entry("1", "one") + tar_entry("2", std::string(9000, 'x')).substr(0, 4000),
                 "entry 2: ");
  expect_refused(tar_entry("1", "", '0', "", 7'999'999'999) + tar_end(), "entry 1: ");
  write_file_atomically(
      folder_ / "a.tar",
      test::gzipped(test::tar_bytes({{"1", std::string(60, 'x')}, {"2", std::string(60, 'x')}})));
  UnpackOptions options;
  options.limit = 119;
  const auto message = test::message_of<std::runtime_error>(
      [&] { unpack_archive(folder_ / "a.tar", folder_ / "out", options); });
  EXPECT_NE(message.find("entry 2: the archive unpacks to more than 119 bytes"), std::string::npos)
      << message;
  expect_nothing_else();
  options.limit = 120;
  options.entries = 1;
  const auto many = test::message_of<std::runtime_error>(
      [&] { unpack_archive(folder_ / "a.tar", folder_ / "out", options); });
  EXPECT_NE(many.find("entry 2: the archive has more than 1 entries"), std::string::npos) << many;
  expect_nothing_else();
  options.entries = 2;
  unpack_archive(folder_ / "a.tar", folder_ / "out", options);
}

// A zip that claims 10 bytes and holds more.
TEST_F(Unpack, WhatIsWrittenIsCounted) {
  test::write_archive(folder_ / "a.zip", {{"zeros", std::string(5'000'000, '\0')}});
  std::string bytes = read_file(folder_ / "a.zip");
  const std::string size("\x40\x4b\x4c\x00", 4), small("\x0a\x00\x00\x00", 4);
  for (size_t at; (at = bytes.find(size)) != std::string::npos;) bytes.replace(at, 4, small);
  fs::remove(folder_ / "a.zip");
  write_file_atomically(folder_ / "a.tar", bytes);
  UnpackOptions options;
  options.limit = 100'000;
  const auto message = test::message_of<std::runtime_error>(
      [&] { unpack_archive(folder_ / "a.tar", folder_ / "out", options); });
  EXPECT_NE(message.find("entry zeros: the archive unpacks to more than 100000 bytes"),
            std::string::npos)
      << message;
  expect_nothing_else();
}

TEST_F(Unpack, AFileInTheWayIsNamed) {
  expect_refused(tar_entry("a", "x") + tar_entry("a/b", "y") + tar_end(), "entry a/b: ");
}

}  // namespace
}  // namespace rotrnn
