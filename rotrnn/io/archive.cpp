#include "rotrnn/io/archive.h"

#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "rotrnn/io/gzip.h"

namespace rotrnn {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kArchivePiece = std::size_t{1} << 17;
constexpr std::size_t kTarBlock = 512;

std::string first_bytes(const fs::path& file, std::size_t size) {
  std::ifstream input(file, std::ios::binary);
  std::string bytes(size, '\0');
  input.read(bytes.data(), static_cast<std::streamsize>(size));
  bytes.resize(static_cast<std::size_t>(std::max<std::streamsize>(0, input.gcount())));
  return bytes;
}

EntryKind kind_of(archive_entry* entry) {
  if (archive_entry_hardlink(entry) || archive_entry_hardlink_utf8(entry)) {
    return EntryKind::hard_link;
  }
  switch (archive_entry_filetype(entry)) {
    case AE_IFREG:
      return EntryKind::file;
    case AE_IFDIR:
      return EntryKind::folder;
    case AE_IFLNK:
      return EntryKind::symbolic_link;
    default:
      return EntryKind::special;
  }
}

// The UTF-8 form first: the other one does not exist where the locale cannot express the name.
std::string either(const char* utf8, const char* raw) {
  return utf8 ? utf8 : raw ? raw : "";
}

}  // namespace

// Gzip goes through zlib: libarchive does not check the checksum at its end.
struct ArchiveReader::Source {
  archive* handle = archive_read_new();
  gzFile gzip = nullptr;
  std::vector<char> piece;

  ~Source() {
    archive_read_free(handle);
    if (gzip) gzclose(gzip);
  }

  static la_ssize_t read_gzip(archive* handle, void* self, const void** bytes) {
    auto& source = *static_cast<Source*>(self);
    const int count = gzread(source.gzip, source.piece.data(), kArchivePiece);
    // zlib gives what it has of a file that is cut off; the entries in it come first.
    if (const std::string error = source.gzip_error(); count <= 0 && !error.empty()) {
      archive_set_error(handle, EIO, "%s", error.c_str());
      return -1;
    }
    *bytes = source.piece.data();
    return count;
  }

  std::string gzip_error() const {
    int code = Z_OK;
    const char* message = gzerror(gzip, &code);
    if (code == Z_OK || code == Z_STREAM_END) return "";
    if (code == Z_BUF_ERROR) return "the gzip data end too early";
    return fmt::format("damaged gzip data ({})", code == Z_ERRNO ? std::strerror(errno) : message);
  }
};

ArchiveReader::ArchiveReader(const fs::path& path)
    : path_(path), source_(std::make_unique<Source>()) {
  if (!fs::is_regular_file(path)) fail("is not a file; check the path");
  archive* a = source_->handle;
  archive_read_support_filter_bzip2(a);
  archive_read_support_filter_xz(a);
  archive_read_support_format_tar(a);
  // By the table at its end, which a zip file that is cut off lacks.
  archive_read_support_format_zip_seekable(a);
  int result = ARCHIVE_OK;
  if (is_gzip(first_bytes(path, 2))) {
    source_->gzip = gzopen(path.c_str(), "rbe");
    if (!source_->gzip) fail(fmt::format("cannot open: {}", std::strerror(errno)));
    source_->piece.resize(kArchivePiece);
    result = archive_read_open(a, source_.get(), nullptr, Source::read_gzip, nullptr);
  } else {
    result = archive_read_open_filename(a, path.c_str(), kArchivePiece);
  }
  if (result != ARCHIVE_OK) fail_damaged();
}

ArchiveReader::~ArchiveReader() = default;

void ArchiveReader::fail(const std::string& what) const {
  throw std::runtime_error(entry_.empty()
                               ? fmt::format("{}: {}", path_.string(), what)
                               : fmt::format("{}: entry {}: {}", path_.string(), entry_, what));
}

void ArchiveReader::fail_damaged() const {
  const char* reason = archive_error_string(source_->handle);
  if (entry_.empty() && archive_format(source_->handle) == 0) {
    fail(fmt::format("not a whole tar or zip archive ({}); is the download complete?",
                     reason ? reason : "no reason given"));
  }
  fail(fmt::format("{}; the archive is cut off or damaged, get it again",
                   reason ? reason : "cannot be read"));
}

bool ArchiveReader::next(ArchiveEntry& entry) {
  archive_entry* header = nullptr;
  const int result = archive_read_next_header(source_->handle, &header);
  if (result == ARCHIVE_EOF) {
    check_end();
    return false;
  }
  // A warning is about what does not matter here, such as a name that the locale cannot express.
  if (result != ARCHIVE_OK && result != ARCHIVE_WARN) fail_damaged();
  entry.name = either(archive_entry_pathname_utf8(header), archive_entry_pathname(header));
  entry_ = entry.name;
  if (entry.name.empty()) fail("an entry without a name; the archive is damaged, get it again");
  entry.kind = kind_of(header);
  entry.size = archive_entry_size(header);
  entry.target.clear();
  if (entry.kind == EntryKind::hard_link) {
    entry.target = either(archive_entry_hardlink_utf8(header), archive_entry_hardlink(header));
  } else if (entry.kind == EntryKind::symbolic_link) {
    entry.target = either(archive_entry_symlink_utf8(header), archive_entry_symlink(header));
  }
  return true;
}

std::size_t ArchiveReader::read(char* out, std::size_t size) {
  std::size_t filled = 0;
  while (filled < size) {
    const la_ssize_t count = archive_read_data(source_->handle, out + filled, size - filled);
    if (count < 0) fail_damaged();
    if (count == 0) break;
    filled += static_cast<std::size_t>(count);
  }
  return filled;
}

void ArchiveReader::check_end() {
  if (source_->gzip) {
    // The checksum is behind the last entry.
    while (gzread(source_->gzip, source_->piece.data(), kArchivePiece) > 0) continue;
    const std::string error = source_->gzip_error();
    if (!error.empty()) fail(error + "; the archive is cut off or damaged, get it again");
    return;
  }
  const bool tar =
      (archive_format(source_->handle) & ARCHIVE_FORMAT_BASE_MASK) == ARCHIVE_FORMAT_TAR;
  if (!tar || archive_filter_code(source_->handle, 0) != ARCHIVE_FILTER_NONE) return;
  // A plain tar cut between two entries differs from a whole one by its lack of empty blocks.
  std::array<char, kTarBlock> last{};
  std::ifstream input(path_, std::ios::binary);
  input.seekg(-static_cast<std::streamoff>(kTarBlock), std::ios::end);
  input.read(last.data(), kTarBlock);
  if (!input || std::any_of(last.begin(), last.end(), [](char c) { return c != 0; })) {
    fail("nothing follows, not even the mark of the end; the archive is cut off, get it again");
  }
}

bool is_archive(const fs::path& file) {
  if (!fs::is_regular_file(file)) return false;
  try {
    ArchiveReader reader(file);
    ArchiveEntry entry;
    reader.next(entry);
    return true;
  } catch (const std::runtime_error&) {
    return false;
  }
}

}  // namespace rotrnn
