#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

namespace rotrnn {

/// More than any text that is read here whole, such as a config: no file can fill the memory.
inline constexpr std::size_t kMaxTextBytes = 100'000'000;

/// The whole file as bytes; std::runtime_error when it has more than `limit`.
std::string read_file(const std::filesystem::path& file,
                      std::size_t limit = std::string().max_size());

/// Lets the system forget what it keeps of a file in memory, if it will: what is read next is then
/// what is on the disk.
void drop_cache(const std::filesystem::path& file);

/// A file that appears at `target` whole, by commit(), or not at all.
class AtomicFile {
 public:
  /// Opens a temporary file beside `target`, because a rename is atomic only within a file system.
  /// Behind a symbolic link the file that it leads to is replaced, and the link stays.
  /// std::runtime_error when there is something else than a file, such as a pipe or a device.
  explicit AtomicFile(std::filesystem::path target);

  /// Removes the temporary file unless commit() was reached.
  ~AtomicFile();

  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  /// Appends `size` bytes.
  void write(const void* data, std::size_t size);

  /// Puts the file at `target`, on the disk and not only in the cache; nothing can be written
  /// after.
  void commit();

 private:
  void discard() noexcept;
  void require_open() const;
  [[noreturn]] void fail(const char* action);

  std::filesystem::path target_;
  std::filesystem::path temporary_;
  int descriptor_ = -1;
};

/// std::invalid_argument when `file` is a folder, or is there and not to be replaced; `option` is
/// the one that replaces it.
void check_free(const std::filesystem::path& file, bool replace,
                std::string_view option = "--force");

/// Replaces `file` by `contents`; after a failure, or a kill, the previous file is still there.
void write_file_atomically(const std::filesystem::path& file, std::string_view contents);

/// Writes a file in a folder that is not in use yet: not atomic, not flushed. For sync_tree() and a
/// rename of the folder.
void write_new_file(const std::filesystem::path& file, std::string_view contents);

/// Returns when a folder is on the disk, with everything below.
void sync_tree(const std::filesystem::path& folder);

/// Makes the names in `folder` (files created, renamed, removed) survive a power failure.
void sync_folder(const std::filesystem::path& folder);

/// Puts the finished folder `fresh` in the place of `target` and removes the old `target`.
/// A kill leaves a whole old or new folder where existing_folder() finds it, and may leave the
/// other one at `fresh` or `target`.old; the next call overwrites `target`.old, the caller clears
/// `fresh`.
void replace_folder(const std::filesystem::path& fresh, const std::filesystem::path& target);

/// The same of a folder that is on the disk already (sync_tree), and the old `target` becomes
/// `previous`, in the place of an older one. A kill leaves whole folders at two of `fresh`,
/// `target` and `previous` at least, once there were two.
void rotate_folder(const std::filesystem::path& fresh, const std::filesystem::path& target,
                   const std::filesystem::path& previous);

/// `target` if it exists, else the `target`.old that a killed replace_folder() left, else empty.
std::filesystem::path existing_folder(const std::filesystem::path& target);

}  // namespace rotrnn
