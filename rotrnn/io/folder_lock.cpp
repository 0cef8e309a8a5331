#include "rotrnn/io/folder_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>

namespace rotrnn {
namespace {

// A file and not the folder itself: network file systems lock only what is open for writing.
constexpr char kName[] = ".rotrnn.lock";

std::string this_process() {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  return fmt::format("process {} on {}", ::getpid(), host.data());
}

// Who holds the lock, by what it wrote; printable, since anything may be in the file.
std::string holder(int descriptor) {
  std::array<char, 300> text{};
  const ssize_t size = ::pread(descriptor, text.data(), text.size(), 0);
  std::string out(text.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
  out.resize(std::min(out.size(), out.find('\n')));
  std::replace_if(
      out.begin(), out.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return out.empty() ? "" : fmt::format(" ({})", out);
}

bool same_file(int descriptor, const std::filesystem::path& file) {
  struct stat opened {
  }, named{};
  return ::fstat(descriptor, &opened) == 0 && ::stat(file.c_str(), &named) == 0 &&
         opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

}  // namespace

FolderLock::FolderLock(const std::filesystem::path& folder) : file_(folder / kName) {
  for (;;) {
    descriptor_ = ::open(file_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (descriptor_ < 0) {
      throw std::runtime_error(
          fmt::format("{}: cannot be written: {}; check the path, its permissions and the disk",
                      folder.string(), std::strerror(errno)));
    }
    const bool locked = ::flock(descriptor_, LOCK_EX | LOCK_NB) == 0;
    const int error = errno;
    if (!locked && error == EWOULDBLOCK) {
      const std::string who = holder(descriptor_);
      ::close(descriptor_);
      throw std::runtime_error(
          fmt::format("{}: another rotrnn{} is writing into it; wait until it ends, or choose "
                      "another --out",
                      folder.string(), who));
    }
    // Else a file system without locks: go on as if there were none.
    if (!locked || same_file(descriptor_, file_)) break;
    ::close(descriptor_);  // the holder before us removed it between our two calls
  }
  // For others to read; a full disk must not prevent work that needs no space.
  const std::string text = this_process() + "\n";
  if (::ftruncate(descriptor_, 0) == 0) {
    [[maybe_unused]] const ssize_t written = ::pwrite(descriptor_, text.data(), text.size(), 0);
  }
}

FolderLock::~FolderLock() {
  // While it is locked, so that no other process's file is removed.
  if (same_file(descriptor_, file_)) ::unlink(file_.c_str());
  ::close(descriptor_);
}

}  // namespace rotrnn
