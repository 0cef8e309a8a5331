#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace rotrnn::board {

/// An open file, closed with the object.
class OpenFile {
 public:
  OpenFile() = default;
  explicit OpenFile(int descriptor) : descriptor_(descriptor) {}
  OpenFile(OpenFile&& other) noexcept;
  OpenFile& operator=(OpenFile&& other) noexcept;
  ~OpenFile();

  explicit operator bool() const { return descriptor_ >= 0; }
  int descriptor() const { return descriptor_; }

 private:
  int descriptor_ = -1;
};

/// What a folder holds: links and special files are left out.
struct Entry {
  std::string name;
  bool folder = false;
};

/// Files below a folder. Every part of a path is opened by itself and never through a symbolic
/// link, so nothing outside can be reached, whatever is renamed meanwhile.
class Beneath {
 public:
  explicit Beneath(std::filesystem::path root) : root_(std::move(root)) {}

  const std::filesystem::path& root() const { return root_; }

  /// A regular file; none when there is no such file.
  OpenFile open(const std::filesystem::path& relative) const;

  /// The files and folders in a folder, sorted by name, at most `most`; empty when it is gone.
  std::vector<Entry> list(const std::filesystem::path& relative, size_t most) const;

  /// The bytes of a regular file; none when it is not there or larger than `most`.
  std::optional<std::string> read(const std::filesystem::path& relative, size_t most) const;

  /// Size, times and number of a regular file.
  std::optional<struct stat> status(const std::filesystem::path& relative) const;

 private:
  OpenFile folder(const std::filesystem::path& relative) const;

  std::filesystem::path root_;
};

}  // namespace rotrnn::board
