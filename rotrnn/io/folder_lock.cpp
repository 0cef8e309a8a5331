#include "rotrnn/io/folder_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace rotrnn {

FolderLock::FolderLock(const std::filesystem::path& folder) {
  descriptor_ = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor_ < 0) {
    throw std::runtime_error(
        fmt::format("{}: cannot be opened: {}", folder.string(), std::strerror(errno)));
  }
  if (::flock(descriptor_, LOCK_EX | LOCK_NB) == 0) return;
  const int error = errno;
  if (error != EWOULDBLOCK) return;  // a file system without locks: go on as if there were none
  ::close(descriptor_);
  throw std::runtime_error(
      fmt::format("{}: another rotrnn is writing into it; wait until it ends, or choose another "
                  "--out",
                  folder.string()));
}

FolderLock::~FolderLock() {
  ::close(descriptor_);
}

}  // namespace rotrnn
