#include "rotrnn/io/unpack.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <system_error>
#include <vector>

#include "rotrnn/io/archive.h"
#include "rotrnn/io/atomic_file.h"

namespace rotrnn {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kUnpackPiece = std::size_t{1} << 17;

struct Link {
  std::string entry;
  fs::path path;
  std::string target;
};

// Unpacks below a folder in which it is alone. Symbolic links are made last, so no name that is
// written to can lead through one.
class Unpacker {
 public:
  Unpacker(const fs::path& archive, const fs::path& folder, const UnpackOptions& options)
      : archive_(archive),
        reader_(archive),
        folder_(folder),
        options_(options),
        piece_(kUnpackPiece) {}

  void run() {
    ArchiveEntry entry;
    while (reader_.next(entry)) {
      const fs::path name = safe_name(entry.name);
      if (options_.wanted && !options_.wanted(name.generic_string())) continue;
      if (++entries_ > options_.entries) {
        reader_.fail(fmt::format("the archive has more than {} entries; nothing was unpacked",
                                 options_.entries));
      }
      add(entry, name);
    }
    for (const Link& link : links_) make(link);
    for (const Link& link : links_) check(link);
  }

 private:
  fs::path safe_name(const std::string& name) const {
    const fs::path path(name);
    if (path.is_absolute()) {
      reader_.fail("has an absolute name; the archive is not to be trusted, nothing was unpacked");
    }
    for (const fs::path& part : path) {
      if (part == "..") {
        reader_.fail(
            "leads out of its folder; the archive is not to be trusted, nothing was "
            "unpacked");
      }
    }
    return path.lexically_normal();
  }

  void add(const ArchiveEntry& entry, const fs::path& name) {
    const fs::path path = folder_ / name;
    switch (entry.kind) {
      case EntryKind::folder:
        make_folder(path);
        return;
      case EntryKind::file:
        make_folder(path.parent_path());
        write(path, entry.size);
        return;
      case EntryKind::symbolic_link:
        make_folder(path.parent_path());
        links_.push_back({entry.name, path, entry.target});
        return;
      case EntryKind::hard_link:
        link(path, folder_ / safe_name(entry.target));
        return;
      case EntryKind::special:
        reader_.fail("is neither file nor folder nor link; nothing was unpacked");
    }
  }

  void make_folder(const fs::path& path) {
    std::error_code error;
    fs::create_directories(path, error);
    if (error) reader_.fail(fmt::format("cannot make the folder: {}", error.message()));
  }

  // A name that comes twice is the later entry, as tar has it; not written through, since it may be
  // a hard link to another.
  void write(const fs::path& path, int64_t claimed) {
    if (claimed > options_.limit - written_) refuse_size();
    std::error_code none;
    fs::remove(path, none);
    const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor < 0) fail_writing();
    try {
      while (const std::size_t size = reader_.read(piece_.data(), piece_.size())) {
        written_ += static_cast<int64_t>(size);
        if (written_ > options_.limit) refuse_size();
        write_all(descriptor, size);
      }
    } catch (...) {
      ::close(descriptor);
      throw;
    }
    if (::close(descriptor) != 0) fail_writing();
  }

  void write_all(int descriptor, std::size_t size) {
    for (std::size_t done = 0; done < size;) {
      const ssize_t count = ::write(descriptor, piece_.data() + done, size - done);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) fail_writing();
      done += static_cast<std::size_t>(count);
    }
  }

  void link(const fs::path& path, const fs::path& target) {
    std::error_code error;
    fs::create_directories(path.parent_path(), error);
    if (!fs::is_regular_file(target, error)) {
      reader_.fail("is a hard link to a file that is not in the archive before it");
    }
    if (path == target) return;
    fs::remove(path, error);
    fs::create_hard_link(target, path, error);
    if (error) reader_.fail(fmt::format("cannot make the link: {}", error.message()));
  }

  void make(const Link& link) const {
    std::error_code error;
    fs::create_symlink(link.target, link.path, error);
    if (error) fail(link, fmt::format("cannot make the link: {}", error.message()));
  }

  // Where it leads through all the others, not what it says.
  void check(const Link& link) const {
    std::error_code error;
    const fs::path root = fs::canonical(folder_), end = fs::weakly_canonical(link.path, error);
    const auto [at, ignored] = std::mismatch(root.begin(), root.end(), end.begin(), end.end());
    if (error || at != root.end() || fs::path(link.target).is_absolute()) {
      fail(link,
           fmt::format("is a link to {}, out of its folder; the archive is not to be trusted, "
                       "nothing was unpacked",
                       link.target));
    }
  }

  [[noreturn]] void fail(const Link& link, const std::string& what) const {
    throw std::runtime_error(fmt::format("{}: entry {}: {}", archive_.string(), link.entry, what));
  }

  [[noreturn]] void refuse_size() const {
    reader_.fail(fmt::format("the archive unpacks to more than {} bytes; nothing was unpacked",
                             options_.limit));
  }

  [[noreturn]] void fail_writing() const {
    reader_.fail(fmt::format("cannot write below {}: {}; check the disk and its free space",
                             folder_.string(), std::strerror(errno)));
  }

  fs::path archive_;
  ArchiveReader reader_;
  fs::path folder_;
  const UnpackOptions& options_;
  std::vector<char> piece_;
  std::vector<Link> links_;
  int64_t written_ = 0, entries_ = 0;
};

// One flush of the file system costs less than one for each of a hundred thousand files.
void sync_all(const fs::path& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool done = descriptor >= 0 && ::syncfs(descriptor) == 0;
  const int error = errno;
  if (descriptor >= 0) ::close(descriptor);
  if (!done) {
    throw std::runtime_error(fmt::format("{}: cannot flush to the disk: {}; check the disk",
                                         folder.string(), std::strerror(error)));
  }
}

}  // namespace

void unpack_archive(const fs::path& archive, const fs::path& folder, const UnpackOptions& options) {
  const fs::path target = folder.has_filename() ? folder : folder.parent_path();
  const fs::path fresh = target.string() + ".new";
  fs::remove_all(fresh);
  try {
    Unpacker unpacker(archive, fresh, options);
    fs::create_directories(fresh);
    unpacker.run();
    sync_all(fresh);
    if (fs::exists(target)) {
      replace_folder(fresh, target);
    } else {
      fs::rename(fresh, target);
      sync_folder(target.has_parent_path() ? target.parent_path() : ".");
    }
  } catch (...) {
    std::error_code ignored;
    fs::remove_all(fresh, ignored);
    throw;
  }
}

}  // namespace rotrnn
