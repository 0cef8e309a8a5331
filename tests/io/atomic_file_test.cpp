#include "rotrnn/io/atomic_file.h"
#include "rotrnn/io/folder_lock.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

// What the calls below do instead of their work, and what they were asked.
struct System {
  int fsync_error = 0;
  int exchange_error = 0;
  int exit_after_renames = 0;
  std::vector<std::string> calls;
};

System fake;

std::string last_part(const fs::path& path) {
  return path.filename().string();
}

}  // namespace

// These stand before the C library's: disks that fail and kernels without RENAME_EXCHANGE are hard
// to find, and what reaches the disk in which order is otherwise invisible.
extern "C" int fsync(int descriptor) {
  const fs::path path = fs::read_symlink("/proc/self/fd/" + std::to_string(descriptor));
  fake.calls.push_back("fsync " + last_part(path));
  errno = fake.fsync_error;
  return errno != 0 ? -1 : static_cast<int>(::syscall(SYS_fsync, descriptor));
}

extern "C" int renameat2(int from_folder, const char* from, int to_folder, const char* to,
                         unsigned flags) noexcept {
  fake.calls.push_back("exchange " + last_part(from) + " " + last_part(to));
  errno = fake.exchange_error;
  if (errno != 0) return -1;
  return static_cast<int>(::syscall(SYS_renameat2, from_folder, from, to_folder, to, flags));
}

extern "C" int rename(const char* from, const char* to) noexcept {
  fake.calls.push_back("rename " + last_part(from) + " " + last_part(to));
  const long result = ::syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
  if (fake.exit_after_renames > 0 && --fake.exit_after_renames == 0) ::_exit(7);
  return static_cast<int>(result);
}

namespace rotrnn {
namespace {

class AtomicFileTest : public testing::Test {
 protected:
  AtomicFileTest() {
    std::string pattern = (fs::temp_directory_path() / "rotrnn-atomic-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    fake = {};
  }
  ~AtomicFileTest() override {
    fake = {};
    fs::remove_all(folder_);
  }

  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_))
      names.push_back(last_part(entry.path()));
    std::sort(names.begin(), names.end());
    return names;
  }

  fs::path make_folder(const std::string& name, const std::string& contents) const {
    fs::create_directories(folder_ / name);
    write_file_atomically(folder_ / name / "weights", contents);
    fake.calls.clear();
    return folder_ / name;
  }

  fs::path folder_;
};

using Names = std::vector<std::string>;

template <typename Function>
std::string message_of(Function function) {
  try {
    function();
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  ADD_FAILURE() << "no std::runtime_error";
  return "";
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_F(AtomicFileTest, ReadsBackWhatWasWritten) {
  const fs::path file = folder_ / "file";
  for (const std::string& contents :
       {std::string(), std::string("one\0two\n\xff", 9), std::string(3'000'000, 'x')}) {
    write_file_atomically(file, contents);
    EXPECT_EQ(read_file(file), contents);
    EXPECT_EQ(names(), Names{"file"});
  }
}

TEST_F(AtomicFileTest, ReadsAFileThatDoesNotTellItsSize) {
  EXPECT_TRUE(read_file("/proc/self/status").starts_with("Name:"));
}

TEST_F(AtomicFileTest, ReadNamesPathAndReason) {
  const std::string missing = message_of([&] { read_file(folder_ / "missing"); });
  EXPECT_TRUE(has(missing, (folder_ / "missing").string())) << missing;
  EXPECT_TRUE(has(missing, "No such file or directory")) << missing;
  const std::string folder = message_of([&] { read_file(folder_); });
  EXPECT_TRUE(has(folder, "Is a directory")) << folder;
}

TEST_F(AtomicFileTest, ALinkStaysAndWhatItLeadsToIsReplaced) {
  fs::create_directory(folder_ / "disk");
  write_file_atomically(folder_ / "disk" / "file", "old");
  fs::create_symlink("disk/file", folder_ / "link");
  write_file_atomically(folder_ / "link", "new");
  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
  EXPECT_EQ(read_file(folder_ / "disk" / "file"), "new");
  EXPECT_EQ(names(), (Names{"disk", "link"}));
}

TEST_F(AtomicFileTest, PipesDevicesAndFoldersAreNotReplaced) {
  const fs::path pipe = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  fs::create_directory(folder_ / "folder");
  for (const fs::path& target : {pipe, fs::path("/dev/null"), folder_ / "folder"}) {
    const std::string error = message_of([&] { write_file_atomically(target, "x"); });
    EXPECT_TRUE(has(error, target.string() + ": is no regular file")) << error;
  }
  EXPECT_TRUE(fs::is_fifo(pipe));
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  EXPECT_EQ(names(), (Names{"folder", "pipe"}));
}

TEST_F(AtomicFileTest, OnlyWhatIsFreeOrMayBeReplacedIsTaken) {
  const fs::path file = folder_ / "file";
  EXPECT_NO_THROW(check_free(file, false));
  write_file_atomically(file, "x");
  EXPECT_NO_THROW(check_free(file, true));
  try {
    check_free(file, false, "--overwrite");
    ADD_FAILURE() << "a file that is there was taken";
  } catch (const std::invalid_argument& error) {
    EXPECT_TRUE(has(error.what(), "exists; --overwrite replaces it")) << error.what();
  }
  EXPECT_THROW(check_free(folder_, true), std::invalid_argument);
}

TEST_F(AtomicFileTest, WritesInTheCurrentFolder) {
  const fs::path before = fs::current_path();
  fs::current_path(folder_);
  write_file_atomically("bare", "text");
  fs::current_path(before);
  EXPECT_EQ(read_file(folder_ / "bare"), "text");
}

TEST_F(AtomicFileTest, FileHasTheUsualPermissions) {
  const mode_t before = ::umask(022);
  write_file_atomically(folder_ / "file", "text");
  ::umask(before);
  EXPECT_EQ(fs::status(folder_ / "file").permissions(), fs::perms(0644));
}

TEST_F(AtomicFileTest, FlushesBeforeAndAfterTheRename) {
  write_file_atomically(folder_ / "file", "text");
  ASSERT_EQ(fake.calls.size(), 3u);
  const std::string temporary = fake.calls[0].substr(std::string("fsync ").size());
  EXPECT_TRUE(temporary.starts_with("file.tmp-")) << temporary;
  EXPECT_EQ(fake.calls[1], "rename " + temporary + " file");
  EXPECT_EQ(fake.calls[2], "fsync " + last_part(folder_));
}

TEST_F(AtomicFileTest, WithoutCommitNothingIsLeft) {
  write_file_atomically(folder_ / "file", "old");
  {
    AtomicFile output(folder_ / "file");
    output.write("new", 3);
    EXPECT_EQ(names().size(), 2u);
  }
  EXPECT_EQ(names(), Names{"file"});
  EXPECT_EQ(read_file(folder_ / "file"), "old");
}

TEST_F(AtomicFileTest, TwoWritersOfOneFileDoNotMix) {
  AtomicFile first(folder_ / "file");
  AtomicFile second(folder_ / "file");
  first.write("first", 5);
  second.write("second", 6);
  first.commit();
  EXPECT_EQ(read_file(folder_ / "file"), "first");
  second.commit();
  EXPECT_EQ(read_file(folder_ / "file"), "second");
  EXPECT_EQ(names(), Names{"file"});
}

TEST_F(AtomicFileTest, PassesOverWhatAKilledProcessLeft) {
  std::string temporary;
  {
    const AtomicFile probe(folder_ / "file");
    temporary = names().at(0);
  }
  const std::size_t digits = temporary.rfind('-') + 1;
  const unsigned long number = std::stoul(temporary.substr(digits));
  for (const int ahead : {1, 2})
    fs::create_directory(folder_ / (temporary.substr(0, digits) + std::to_string(number + ahead)));
  write_file_atomically(folder_ / "file", "text");
  EXPECT_EQ(read_file(folder_ / "file"), "text");
  EXPECT_EQ(names().size(), 3u);
}

TEST_F(AtomicFileTest, NothingIsWrittenAfterCommit) {
  AtomicFile output(folder_ / "file");
  output.commit();
  EXPECT_THROW(output.write("x", 1), std::logic_error);
  EXPECT_THROW(output.commit(), std::logic_error);
}

TEST_F(AtomicFileTest, MissingFolderNamesPathAndReason) {
  const fs::path file = folder_ / "missing" / "file";
  const std::string message = message_of([&] { write_file_atomically(file, "x"); });
  EXPECT_TRUE(has(message, file.string())) << message;
  EXPECT_TRUE(has(message, "No such file or directory")) << message;
}

TEST_F(AtomicFileTest, FailedRenameLeavesTheTargetAndNoTemporary) {
  AtomicFile file(folder_ / "taken");
  file.write("x", 1);
  fs::create_directory(folder_ / "taken");  // by another process in the meantime
  const std::string message = message_of([&] { file.commit(); });
  EXPECT_TRUE(has(message, "Is a directory")) << message;
  EXPECT_TRUE(has(message, "unchanged")) << message;
  EXPECT_EQ(names(), Names{"taken"});
}

TEST_F(AtomicFileTest, FailedFlushLeavesTheOldFileAndNoTemporary) {
  write_file_atomically(folder_ / "file", "old");
  fake.fsync_error = EIO;
  const std::string message = message_of([&] { write_file_atomically(folder_ / "file", "new"); });
  EXPECT_TRUE(has(message, (folder_ / "file").string())) << message;
  EXPECT_TRUE(has(message, "Input/output error")) << message;
  EXPECT_EQ(names(), Names{"file"});
  EXPECT_EQ(read_file(folder_ / "file"), "old");
}

TEST_F(AtomicFileTest, FailedWriteLeavesTheOldFileAndNoTemporary) {
  write_file_atomically(folder_ / "file", "old");
  // A full disk, made of the limit on the size of files.
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit tight{1000, before.rlim_max};
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &tight), 0);

  AtomicFile output(folder_ / "file");
  const std::string contents(5000, 'x');
  const std::string message = message_of([&] { output.write(contents.data(), contents.size()); });
  EXPECT_EQ(names(), Names{"file"});
  EXPECT_THROW(output.commit(), std::logic_error);

  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_TRUE(has(message, (folder_ / "file").string())) << message;
  EXPECT_TRUE(has(message, "File too large")) << message;
  EXPECT_EQ(read_file(folder_ / "file"), "old");
}

TEST_F(AtomicFileTest, SyncFolderNamesPathAndReason) {
  sync_folder(folder_);
  const std::string message = message_of([&] { sync_folder(folder_ / "missing"); });
  EXPECT_TRUE(has(message, (folder_ / "missing").string())) << message;
  EXPECT_TRUE(has(message, "No such file or directory")) << message;
  fake.fsync_error = EIO;
  EXPECT_TRUE(has(message_of([&] { sync_folder(folder_); }), "Input/output error"));
  fake.fsync_error = EINVAL;
  EXPECT_NO_THROW(sync_folder(folder_));
}

TEST_F(AtomicFileTest, FolderIsRenamedToAFreePlace) {
  const fs::path fresh = make_folder("best.new", "new");
  replace_folder(fresh, folder_ / "best");
  EXPECT_EQ(read_file(folder_ / "best" / "weights"), "new");
  EXPECT_EQ(names(), Names{"best"});
  EXPECT_EQ(fake.calls, (Names{"fsync weights", "fsync best.new", "rename best.new best",
                               "fsync " + last_part(folder_)}));
}

TEST_F(AtomicFileTest, FolderIsExchanged) {
  make_folder("best", "old");
  const fs::path fresh = make_folder("best.new", "new");
  replace_folder(fresh, folder_ / "best");
  EXPECT_EQ(read_file(folder_ / "best" / "weights"), "new");
  EXPECT_EQ(names(), Names{"best"});
  EXPECT_EQ(fake.calls, (Names{"fsync weights", "fsync best.new", "exchange best.new best",
                               "fsync " + last_part(folder_)}));
}

TEST_F(AtomicFileTest, FolderIsFlushedInItsDepth) {
  const fs::path fresh = make_folder("best.new", "new");
  make_folder("best.new/inner", "more");
  fs::create_symlink("/nowhere", fresh / "dangling");
  fs::create_symlink("weights", fresh / "link");  // what it points to is not part of the folder
  replace_folder(fresh, folder_ / "best");
  EXPECT_EQ(std::count(fake.calls.begin(), fake.calls.end(), "fsync weights"), 2);
  EXPECT_EQ(std::count(fake.calls.begin(), fake.calls.end(), "fsync inner"), 1);
  EXPECT_EQ(read_file(folder_ / "best" / "inner" / "weights"), "more");
}

TEST_F(AtomicFileTest, BothParentsAreFlushed) {
  make_folder("best", "old");
  const fs::path fresh = make_folder("work/best.new", "new");
  replace_folder(fresh, folder_ / "best");
  EXPECT_EQ(fake.calls.back(), "fsync work");
  EXPECT_EQ(fake.calls.at(fake.calls.size() - 2), "fsync " + last_part(folder_));
}

TEST_F(AtomicFileTest, FolderIsRenamedTwiceWhereThereIsNoExchange) {
  for (const int error : {ENOSYS, EINVAL, ENOTSUP}) {
    make_folder("best", "old");
    make_folder("best.old", "what an earlier kill left");
    const fs::path fresh = make_folder("best.new", "new");
    fake.exchange_error = error;
    replace_folder(fresh, folder_ / "best");
    EXPECT_EQ(read_file(folder_ / "best" / "weights"), "new");
    EXPECT_EQ(names(), Names{"best"});
    EXPECT_EQ(fake.calls, (Names{"fsync weights", "fsync best.new", "exchange best.new best",
                                 "rename best best.old", "rename best.new best",
                                 "fsync " + last_part(folder_)}));
  }
}

TEST_F(AtomicFileTest, AnotherErrorOfTheExchangeChangesNothing) {
  make_folder("best", "old");
  const fs::path fresh = make_folder("best.new", "new");
  fake.exchange_error = EACCES;
  const std::string message = message_of([&] { replace_folder(fresh, folder_ / "best"); });
  EXPECT_TRUE(has(message, "Permission denied")) << message;
  EXPECT_EQ(read_file(folder_ / "best" / "weights"), "old");
  EXPECT_EQ(names(), (Names{"best", "best.new"}));
}

TEST_F(AtomicFileTest, FailedFlushChangesNothing) {
  make_folder("best", "old");
  const fs::path fresh = make_folder("best.new", "new");
  fake.fsync_error = EIO;
  EXPECT_THROW(replace_folder(fresh, folder_ / "best"), std::runtime_error);
  EXPECT_EQ(read_file(folder_ / "best" / "weights"), "old");
  EXPECT_EQ(names(), (Names{"best", "best.new"}));
}

TEST_F(AtomicFileTest, FailedSecondRenameIsTakenBack) {
  // A folder cannot move into itself: the exchange and the second rename both fail.
  make_folder("best", "old");
  const fs::path fresh = make_folder("best/new", "new");
  EXPECT_THROW(replace_folder(fresh, folder_ / "best"), std::runtime_error);
  EXPECT_EQ(read_file(folder_ / "best" / "weights"), "old");
  EXPECT_EQ(names(), Names{"best"});
}

TEST_F(AtomicFileTest, KillBetweenTheRenamesIsRecovered) {
  const fs::path target = make_folder("best", "old");
  const fs::path fresh = make_folder("best.new", "new");
  fake.exchange_error = ENOSYS;
  EXPECT_EXIT(
      {
        fake.exit_after_renames = 1;
        replace_folder(fresh, target);
      },
      testing::ExitedWithCode(7), "");
  EXPECT_EQ(names(), (Names{"best.new", "best.old"}));
  EXPECT_EQ(existing_folder(target), folder_ / "best.old");
  EXPECT_EQ(read_file(existing_folder(target) / "weights"), "old");

  replace_folder(fresh, target);
  EXPECT_EQ(existing_folder(target), target);
  EXPECT_EQ(read_file(target / "weights"), "new");
}

TEST_F(AtomicFileTest, KillAfterTheRenamesIsRecovered) {
  const fs::path target = make_folder("best", "old");
  const fs::path fresh = make_folder("best.new", "new");
  fake.exchange_error = ENOSYS;
  EXPECT_EXIT(
      {
        fake.exit_after_renames = 2;
        replace_folder(fresh, target);
      },
      testing::ExitedWithCode(7), "");
  EXPECT_EQ(names(), (Names{"best", "best.old"}));
  EXPECT_EQ(existing_folder(target), target);
  EXPECT_EQ(read_file(target / "weights"), "new");
}

TEST_F(AtomicFileTest, ExistingFolder) {
  const fs::path target = folder_ / "best";
  EXPECT_TRUE(existing_folder(target).empty());
  make_folder("best.old", "old");
  EXPECT_EQ(existing_folder(target), folder_ / "best.old");
  EXPECT_EQ(existing_folder(target / ""), folder_ / "best.old");
  make_folder("best", "new");
  EXPECT_EQ(existing_folder(target), target);
}

TEST_F(AtomicFileTest, TrailingSlashesNameTheSameFolder) {
  make_folder("best", "old");
  const fs::path fresh = make_folder("best.new", "new");
  fake.exchange_error = ENOSYS;
  replace_folder(fresh / "", folder_ / "best" / "");
  EXPECT_EQ(read_file(folder_ / "best" / "weights"), "new");
  EXPECT_EQ(names(), Names{"best"});
}

TEST_F(AtomicFileTest, WhatIsNotAFolderIsRefused) {
  const fs::path fresh = make_folder("best.new", "new");
  write_file_atomically(folder_ / "file", "text");
  const auto refused = [&](const fs::path& from, const char* to) {
    return has(message_of([&] { replace_folder(from, folder_ / to); }), "is not a folder");
  };
  EXPECT_TRUE(refused(fresh, "file"));
  EXPECT_TRUE(refused(folder_ / "file", "best"));
  EXPECT_TRUE(refused(folder_ / "missing", "best"));
  EXPECT_EQ(names(), (Names{"best.new", "file"}));
}

TEST_F(AtomicFileTest, AFolderDoesNotReplaceItself) {
  const fs::path target = make_folder("best", "old");
  const fs::path old = make_folder("best.old", "new");
  EXPECT_THROW(replace_folder(target, folder_ / "." / "best"), std::runtime_error);
  EXPECT_THROW(replace_folder(old, target), std::runtime_error);
  EXPECT_EQ(read_file(target / "weights"), "old");
  EXPECT_EQ(read_file(old / "weights"), "new");
}

TEST_F(AtomicFileTest, AFolderIsHeldByOneOnly) {
  const fs::path run = make_folder("run", "text");
  std::string host(256, '\0');
  ::gethostname(host.data(), host.size());
  {
    const FolderLock first(run);
    const std::string message = message_of([&] { FolderLock second(run); });
    EXPECT_TRUE(has(message, "another rotrnn (process " + std::to_string(::getpid()) + " on " +
                                 host.c_str() + ")"))
        << message;
  }
  EXPECT_FALSE(fs::exists(run / ".rotrnn.lock")) << "nothing is left";
  EXPECT_NO_THROW(FolderLock third(run));
  EXPECT_TRUE(has(message_of([&] { FolderLock none(folder_ / "missing"); }), "missing"));
}

TEST_F(AtomicFileTest, WhatAKilledProcessLeftLocksNothing) {
  const fs::path run = make_folder("run", "text");
  EXPECT_EXIT(
      {
        const FolderLock lock(run);
        ::_exit(7);
      },
      testing::ExitedWithCode(7), "");
  EXPECT_TRUE(fs::exists(run / ".rotrnn.lock"));
  EXPECT_NO_THROW(FolderLock lock(run));
}

TEST_F(AtomicFileTest, TheTextOfALockIsNotTrusted) {
  const fs::path run = make_folder("run", "text");
  const FolderLock first(run);
  std::ofstream(run / ".rotrnn.lock") << "\033[2J" << std::string(5000, 'x');
  const std::string message = message_of([&] { FolderLock second(run); });
  EXPECT_LT(message.size(), 600);
  EXPECT_FALSE(has(message, "\033"));
}

TEST_F(AtomicFileTest, ReadingStopsAtTheLimit) {
  write_file_atomically(folder_ / "file", "12345");
  EXPECT_EQ(read_file(folder_ / "file", 5), "12345");
  EXPECT_TRUE(has(message_of([&] { read_file(folder_ / "file", 4); }), "more than 4 bytes"));
  EXPECT_TRUE(has(message_of([&] { read_file("/dev/zero", 100000); }), "more than 100000 bytes"));
  drop_cache(folder_ / "file");
  EXPECT_EQ(read_file(folder_ / "file"), "12345");
  write_new_file(folder_ / "new", "12345");
  EXPECT_EQ(read_file(folder_ / "new"), "12345");
  EXPECT_TRUE(has(message_of([&] { write_new_file(folder_ / "new", ""); }), "File exists"));
}

TEST_F(AtomicFileTest, RotatingKeepsThePreviousFolder) {
  const fs::path last = folder_ / "last", previous = folder_ / "previous";
  for (const int exchange_error : {0, ENOSYS}) {
    fs::remove_all(last);
    fs::remove_all(previous);
    fake.exchange_error = exchange_error;
    const auto rotate = [&](const std::string& contents) {
      rotate_folder(make_folder("last.new", contents), last, previous);
      return read_file(last / "weights");
    };
    EXPECT_EQ(rotate("1"), "1");
    EXPECT_EQ(names(), Names{"last"});
    EXPECT_EQ(rotate("2"), "2");
    EXPECT_EQ(read_file(previous / "weights"), "1");
    EXPECT_EQ(rotate("3"), "3");
    EXPECT_EQ(read_file(previous / "weights"), "2");
    EXPECT_EQ(names(), (Names{"last", "previous"}));
  }
}

// Whole folders at two of the three names at least, whenever it ends.
TEST_F(AtomicFileTest, KillWhileRotatingLeavesTwoWholeFolders) {
  fake.exchange_error = ENOSYS;
  for (const int renames : {1, 2}) {
    make_folder("previous", "1");
    make_folder("last", "2");
    const fs::path fresh = make_folder("last.new", "3");
    EXPECT_EXIT(
        {
          fake.exit_after_renames = renames;
          rotate_folder(fresh, folder_ / "last", folder_ / "previous");
        },
        testing::ExitedWithCode(7), "");
    EXPECT_EQ(read_file(folder_ / "previous" / "weights"), "2");
    EXPECT_EQ(read_file(folder_ / (renames == 1 ? "last.new" : "last") / "weights"), "3");
  }
}

}  // namespace
}  // namespace rotrnn
