#include "rotrnn/board/beneath.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <utility>

namespace rotrnn::board {
namespace fs = std::filesystem;

OpenFile::OpenFile(OpenFile&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

OpenFile& OpenFile::operator=(OpenFile&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

OpenFile::~OpenFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

// The user named the root, so links on the way to it are followed; below it none is.
OpenFile Beneath::folder(const fs::path& relative) const {
  OpenFile at(::open(root_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for (const fs::path& part : relative) {
    if (!at || part == "..") return OpenFile();
    if (part.empty() || part == ".") continue;
    at = OpenFile(
        ::openat(at.descriptor(), part.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  }
  return at;
}

OpenFile Beneath::open(const fs::path& relative) const {
  const fs::path name = relative.filename();
  if (name.empty() || name == "." || name == "..") return OpenFile();
  const OpenFile at = folder(relative.parent_path());
  if (!at) return OpenFile();
  // Opening a pipe would block until it has a writer.
  OpenFile file(::openat(at.descriptor(), name.c_str(),
                         O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  struct stat status {};
  if (!file || ::fstat(file.descriptor(), &status) != 0 || !S_ISREG(status.st_mode)) {
    return OpenFile();
  }
  return file;
}

std::vector<Entry> Beneath::list(const fs::path& relative, size_t most) const {
  OpenFile at = folder(relative);
  std::vector<Entry> out;
  if (!at) return out;
  const int copy = ::fcntl(at.descriptor(), F_DUPFD_CLOEXEC, 0);  // the stream closes its own
  const auto close = [](DIR* stream) { ::closedir(stream); };
  const std::unique_ptr<DIR, decltype(close)> stream(copy < 0 ? nullptr : ::fdopendir(copy), close);
  if (!stream) {
    if (copy >= 0) ::close(copy);
    return out;
  }
  for (const dirent* entry; out.size() < most && (entry = ::readdir(stream.get())) != nullptr;) {
    const std::string name = entry->d_name;
    struct stat status {};
    if (name == "." || name == ".." ||
        ::fstatat(at.descriptor(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
      continue;
    }
    if (S_ISDIR(status.st_mode) || S_ISREG(status.st_mode)) {
      out.push_back({name, S_ISDIR(status.st_mode)});
    }
  }
  std::sort(out.begin(), out.end(), [](const Entry& a, const Entry& b) { return a.name < b.name; });
  return out;
}

std::optional<std::string> Beneath::read(const fs::path& relative, size_t most) const {
  const OpenFile file = open(relative);
  struct stat status {};
  if (!file || ::fstat(file.descriptor(), &status) != 0) return std::nullopt;
  if (status.st_size < 0 || static_cast<size_t>(status.st_size) > most) return std::nullopt;
  std::string text(static_cast<size_t>(status.st_size), '\0');
  size_t filled = 0;
  while (filled < text.size()) {
    const ssize_t count = ::pread(file.descriptor(), text.data() + filled, text.size() - filled,
                                  static_cast<off_t>(filled));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    filled += static_cast<size_t>(count);
  }
  text.resize(filled);
  return text;
}

std::optional<struct stat> Beneath::status(const fs::path& relative) const {
  const OpenFile file = open(relative);
  struct stat status {};
  if (!file || ::fstat(file.descriptor(), &status) != 0) return std::nullopt;
  return status;
}

}  // namespace rotrnn::board
