#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

namespace rotrnn {

/// What an entry of an archive is.
enum class EntryKind { file, folder, symbolic_link, hard_link, special };

/// An entry of an archive.
struct ArchiveEntry {
  std::string name;  // as it is in the archive, not to be trusted; never empty
  EntryKind kind = EntryKind::file;
  int64_t size = 0;    // what the archive claims
  std::string target;  // of a link
};

/// Reads an archive as downloaded, from its first entry to its last: tar, plain or packed by gzip,
/// bzip2 or xz, and zip, recognised by their content. Damage throws std::runtime_error
/// `ARCHIVE: entry NAME: …`. Checksums of packed archives have been checked when next() says false.
class ArchiveReader {
 public:
  explicit ArchiveReader(const std::filesystem::path& archive);
  ~ArchiveReader();
  ArchiveReader(const ArchiveReader&) = delete;
  ArchiveReader& operator=(const ArchiveReader&) = delete;

  /// Goes on to the next entry, over what was not read of this one; false at the end.
  bool next(ArchiveEntry& entry);

  /// The next bytes of the entry, of any size; fewer than `size` only at its end.
  std::size_t read(char* out, std::size_t size);

  /// Throws std::runtime_error about the entry.
  [[noreturn]] void fail(const std::string& what) const;

 private:
  struct Source;
  [[noreturn]] void fail_damaged() const;
  void check_end();

  std::filesystem::path path_;
  std::string entry_;  // name of the entry
  std::unique_ptr<Source> source_;
};

/// Whether a file is an archive that ArchiveReader knows, by its first bytes.
bool is_archive(const std::filesystem::path& file);

}  // namespace rotrnn
