#include "rotrnn/io/atomic_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace rotrnn {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail_with(const fs::path& path, std::string_view action, int error,
                            std::string_view advice) {
  throw std::runtime_error(
      fmt::format("{}: cannot {}: {}; {}", path.string(), action, std::strerror(error), advice));
}

class Descriptor {
 public:
  Descriptor(const fs::path& path, int flags) : value_(::open(path.c_str(), flags | O_CLOEXEC)) {}
  ~Descriptor() {
    if (value_ >= 0) ::close(value_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  operator int() const { return value_; }

 private:
  int value_;
};

fs::path folder_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

// "runs/best/" means "runs/best", but its last component is empty: appending ".old" to it would
// name a file inside the folder.
fs::path without_trailing_slash(const fs::path& path) {
  return path.has_filename() ? path : path.parent_path();
}

fs::path old_name(const fs::path& target) {
  return target.string() + ".old";
}

void sync_file(const fs::path& file) {
  const Descriptor descriptor(file, O_RDONLY);
  if (descriptor < 0 || ::fsync(descriptor) != 0)
    fail_with(file, "flush to the disk", errno, "check the disk");
}

void check_replaceable(const fs::path& fresh, const fs::path& target) {
  if (!fs::is_directory(fresh))
    throw std::runtime_error(
        fmt::format("{}: is not a folder; write the new folder there first", fresh.string()));
  if (fs::exists(target) && !fs::is_directory(target))
    throw std::runtime_error(
        fmt::format("{}: is not a folder; move it out of the way", target.string()));
  // Removing the old folder would remove the new one.
  const fs::path old = old_name(target);
  for (const fs::path& taken : {target, old})
    if (fs::exists(taken) && fs::equivalent(fresh, taken))
      throw std::runtime_error(fmt::format("{}: cannot replace {}; write the new folder elsewhere",
                                           fresh.string(), target.string()));
}

void rename_or_fail(const fs::path& from, const fs::path& to) {
  if (::rename(from.c_str(), to.c_str()) == 0) return;
  const int error = errno;
  fail_with(from, fmt::format("rename to {}", to.string()), error,
            "both must be on one file system, in folders that can be written");
}

void sync_parents(const fs::path& fresh, const fs::path& target) {
  sync_folder(folder_of(target));
  if (folder_of(fresh) != folder_of(target)) sync_folder(folder_of(fresh));
}

// False if the kernel or the file system cannot exchange two names.
bool exchange(const fs::path& fresh, const fs::path& target) {
  if (::renameat2(AT_FDCWD, fresh.c_str(), AT_FDCWD, target.c_str(), RENAME_EXCHANGE) == 0)
    return true;
  const int error = errno;
  if (error == ENOSYS || error == EINVAL || error == ENOTSUP) return false;
  fail_with(target, fmt::format("exchange with {}", fresh.string()), error,
            "the old folder is unchanged; both must be on one file system");
}

// Between the two renames only `old` exists, which existing_folder() knows.
void replace_by_renames(const fs::path& fresh, const fs::path& target, const fs::path& old) {
  fs::remove_all(old);
  rename_or_fail(target, old);
  try {
    rename_or_fail(fresh, target);
  } catch (...) {
    ::rename(old.c_str(), target.c_str());
    throw;
  }
}

}  // namespace

std::string read_file(const fs::path& file, std::size_t limit) {
  const char* advice = "check the path and its permissions";
  const Descriptor descriptor(file, O_RDONLY);
  struct stat status {};
  if (descriptor < 0 || ::fstat(descriptor, &status) != 0) fail_with(file, "open", errno, advice);
  const auto refuse_above_limit = [&](std::size_t size) {
    if (size <= limit) return;
    throw std::runtime_error(fmt::format("{}: has more than {} bytes; it is not what is read here",
                                         file.string(), limit));
  };
  refuse_above_limit(static_cast<std::size_t>(status.st_size));

  // One byte more than the file has, so that its end is seen without growing the buffer.
  std::string contents(static_cast<std::size_t>(status.st_size) + 1, '\0');
  std::size_t filled = 0;
  for (;;) {
    const ssize_t count = ::read(descriptor, contents.data() + filled, contents.size() - filled);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail_with(file, "read", errno, advice);
    if (count == 0) break;
    filled += static_cast<std::size_t>(count);
    refuse_above_limit(filled);
    if (filled == contents.size()) contents.resize(2 * filled);
  }
  contents.resize(filled);
  return contents;
}

void drop_cache(const fs::path& file) {
  // A hint: only pages that are on the disk are dropped, and a file system in memory drops none.
  const Descriptor descriptor(file, O_RDONLY);
  if (descriptor >= 0) ::posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED);
}

void check_free(const fs::path& file, bool replace, std::string_view option) {
  if (fs::is_directory(file)) {
    throw std::invalid_argument(fmt::format("{}: is a folder; name a file", file.string()));
  }
  if (!replace && fs::exists(file)) {
    throw std::invalid_argument(
        fmt::format("{}: exists; {} replaces it, or choose another name", file.string(), option));
  }
}

AtomicFile::AtomicFile(fs::path target)
    : target_(fs::is_symlink(target) ? fs::weakly_canonical(target) : std::move(target)) {
  if (fs::exists(target_) && !fs::is_regular_file(target_)) {
    throw std::runtime_error(
        fmt::format("{}: is no regular file and cannot be replaced by one; choose another name",
                    target_.string()));
  }
  // Not mkstemp: it creates files that only their owner may read. A name can be taken by what a
  // killed process with the same id left.
  static std::atomic<unsigned> counter = 0;
  do {
    temporary_ = fmt::format("{}.tmp-{}-{}", target_.string(), ::getpid(), counter++);
    descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  } while (descriptor_ < 0 && errno == EEXIST);
  if (descriptor_ < 0)
    fail_with(target_, "create a temporary file beside it", errno,
              "its folder must exist and be writable");
}

AtomicFile::~AtomicFile() {
  discard();
}

void AtomicFile::write(const void* data, std::size_t size) {
  require_open();
  const char* next = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t count = ::write(descriptor_, next, size);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail("write");
    next += count;
    size -= static_cast<std::size_t>(count);
  }
}

void AtomicFile::commit() {
  require_open();
  if (::fsync(descriptor_) != 0) fail("flush to the disk");
  if (::close(std::exchange(descriptor_, -1)) != 0) fail("close");
  if (::rename(temporary_.c_str(), target_.c_str()) != 0) fail("put the new file in its place");
  temporary_.clear();
  sync_folder(folder_of(target_));
}

void AtomicFile::discard() noexcept {
  if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
  temporary_.clear();
}

// After a failed write the file has a hole where the bytes should be: it must never be committed.
void AtomicFile::require_open() const {
  if (descriptor_ < 0)
    throw std::logic_error(fmt::format(
        "{}: written after a commit or a failure; open a new AtomicFile", target_.string()));
}

void AtomicFile::fail(const char* action) {
  const int error = errno;
  discard();
  fail_with(target_, action, error, "what was there before is unchanged");
}

void write_file_atomically(const fs::path& file, std::string_view contents) {
  AtomicFile output(file);
  output.write(contents.data(), contents.size());
  output.commit();
}

void write_new_file(const fs::path& file, std::string_view contents) {
  const int descriptor = ::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  bool done = descriptor >= 0;
  while (done && !contents.empty()) {
    const ssize_t count = ::write(descriptor, contents.data(), contents.size());
    done = count >= 0 || errno == EINTR;
    if (count > 0) contents.remove_prefix(static_cast<std::size_t>(count));
  }
  int error = done ? 0 : errno;
  if (descriptor >= 0 && ::close(descriptor) != 0 && error == 0) error = errno;
  if (error != 0) fail_with(file, "write", error, "check the disk and its free space");
}

void sync_tree(const fs::path& folder) {
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    const fs::file_type type = entry.symlink_status().type();
    if (type == fs::file_type::regular) sync_file(entry.path());
    if (type == fs::file_type::directory) sync_folder(entry.path());
  }
  sync_folder(folder);
}

void sync_folder(const fs::path& folder) {
  const Descriptor descriptor(folder, O_RDONLY | O_DIRECTORY);
  if (descriptor < 0) fail_with(folder, "open the folder", errno, "check the path");
  // Some network file systems cannot flush a folder and say EINVAL; nothing better can be done
  // there.
  if (::fsync(descriptor) != 0 && errno != EINVAL)
    fail_with(folder, "flush the folder to the disk", errno, "check the disk");
}

void replace_folder(const fs::path& fresh_folder, const fs::path& target_folder) {
  const fs::path fresh = without_trailing_slash(fresh_folder);
  const fs::path target = without_trailing_slash(target_folder);
  check_replaceable(fresh, target);
  // Everything has to be on the disk before the rename: a rename may become durable first, and
  // would then show a folder of empty files after a power failure.
  sync_tree(fresh);
  // The new names are durable before the old folder goes.
  if (!fs::exists(target)) {
    rename_or_fail(fresh, target);
    sync_parents(fresh, target);
  } else if (exchange(fresh, target)) {
    sync_parents(fresh, target);
    fs::remove_all(fresh);
  } else {
    const fs::path old = old_name(target);
    replace_by_renames(fresh, target, old);
    sync_parents(fresh, target);
    fs::remove_all(old);
  }
}

void rotate_folder(const fs::path& fresh_folder, const fs::path& target_folder,
                   const fs::path& previous_folder) {
  const fs::path fresh = without_trailing_slash(fresh_folder);
  const fs::path target = without_trailing_slash(target_folder);
  const fs::path previous = without_trailing_slash(previous_folder);
  check_replaceable(fresh, target);
  if (!fs::exists(target)) {
    rename_or_fail(fresh, target);
    sync_parents(fresh, target);
  } else if (exchange(fresh, target)) {
    // Durable under its new name before anything older goes; `fresh` is the old one now. What
    // becomes of that does not matter, so it is not flushed.
    sync_parents(fresh, target);
    if (!fs::exists(previous) || !exchange(fresh, previous)) rename_or_fail(fresh, previous);
    fs::remove_all(fresh);
  } else {
    replace_by_renames(fresh, target, previous);
    sync_parents(fresh, target);
  }
}

fs::path existing_folder(const fs::path& target_folder) {
  fs::path target = without_trailing_slash(target_folder);
  if (fs::exists(target)) return target;
  fs::path old = old_name(target);
  return fs::exists(old) ? old : fs::path();
}

}  // namespace rotrnn
