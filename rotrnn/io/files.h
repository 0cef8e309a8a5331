#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

// One way to read the files of a data set, whether a folder or the archive as downloaded.
// Names are relative, with '/', and without "./" in front. The files of a folder come sorted by
// name, those of an archive in its order. Symbolic links of a folder are followed, those of an
// archive are not; special files are passed over.

namespace rotrnn {

/// Files larger than this are refused by default: a small archive may unpack to more
/// than the memory holds.
inline constexpr int64_t kMaxFileBytes = int64_t{1} << 30;

/// Whether to read the file of that name.
using Wanted = std::function<bool(const std::string& name)>;

/// Gives the next bytes of a file; fewer than asked for only at its end.
using ReadBytes = std::function<std::size_t(char* out, std::size_t size)>;

/// Reads `path`, a folder or an archive, and calls `visit` with every wanted file and its bytes,
/// which are gone after the call. Anything damaged, and files over `limit` bytes, throw
/// std::runtime_error that names `path` and the file.
void visit_files(const std::filesystem::path& path, const Wanted& wanted,
                 const std::function<void(const std::string& name, std::string_view bytes)>& visit,
                 int64_t limit = kMaxFileBytes);

/// The same for files of any size, which `visit` reads piece by piece, or in part.
void stream_files(const std::filesystem::path& path, const Wanted& wanted,
                  const std::function<void(const std::string& name, const ReadBytes& read)>& visit);

/// The same for one file of the disk.
void stream_file(const std::filesystem::path& file,
                 const std::function<void(const ReadBytes& read)>& visit);

/// The same, unpacked when it is gzip'ed.
void stream_unpacked(const std::filesystem::path& file,
                     const std::function<void(const ReadBytes& read)>& visit);

/// The names of all files in their order; an archive is read to its end for them.
std::vector<std::string> list_files(const std::filesystem::path& path);

/// How messages call the file `name` of `path`: as a path, or "ARCHIVE: entry NAME".
std::string file_label(const std::filesystem::path& path, const std::string& name);

/// The last `components` parts of a name, "train/pos/0_9.txt" of "aclImdb/train/pos/0_9.txt" for 3:
/// public archives differ by a folder in front. Empty when there are fewer.
std::string_view name_tail(std::string_view name, int components);

/// The folders in front of all names, with a '/' at the end, such as "aclImdb/"; may be empty.
std::string common_folder(const std::vector<std::string>& names);

/// Whether a part of the name starts with '.' or is __MACOSX: what desktops leave behind.
bool is_hidden(std::string_view name);

}  // namespace rotrnn
