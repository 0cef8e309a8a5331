#include "rotrnn/io/files.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <stdexcept>

#include "rotrnn/base/fail.h"
#include "rotrnn/io/archive.h"
#include "rotrnn/io/gzip.h"

namespace rotrnn {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kReadPiece = std::size_t{1} << 20;

// A file on its way: what is claimed of its size, and its bytes.
using Visit =
    std::function<void(const std::string& name, int64_t claimed_size, const ReadBytes& read)>;

struct Identity {
  dev_t device;
  ino_t inode;
  bool operator==(const Identity&) const = default;
};

// Links to folders are followed too, except into a folder that is being walked.
void list_folder(const fs::path& folder, const std::string& prefix, std::vector<Identity>& above,
                 std::vector<std::string>& names) {
  struct stat status {};
  if (::stat(folder.c_str(), &status) != 0) {
    fail(folder.string(),
         fmt::format("cannot open: {}; check the path and its permissions", std::strerror(errno)));
  }
  const Identity identity{status.st_dev, status.st_ino};
  if (std::find(above.begin(), above.end(), identity) != above.end()) return;
  above.push_back(identity);
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string name = prefix + entry.path().filename().string();
    std::error_code dangling;
    const fs::file_type type = entry.status(dangling).type();
    if (type == fs::file_type::directory) list_folder(entry.path(), name + "/", above, names);
    if (type == fs::file_type::regular) names.push_back(name);
  }
  above.pop_back();
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::vector<Identity> above;
  list_folder(folder, "", above, names);
  std::sort(names.begin(), names.end());
  return names;
}

void visit_folder(const fs::path& folder, const Wanted& wanted, const Visit& visit) {
  for (const std::string& name : names_in(folder)) {
    if (!wanted(name)) continue;
    const fs::path path = folder / name;
    stream_file(path, [&](const ReadBytes& read) {
      visit(name, static_cast<int64_t>(fs::file_size(path)), read);
    });
  }
}

std::string plain_name(std::string name) {
  while (name.starts_with("./")) name.erase(0, name.find_first_not_of('/', 1));
  return name;
}

void visit_archive(const fs::path& archive, const Wanted& wanted, const Visit& visit) {
  ArchiveReader reader(archive);
  ArchiveEntry entry;
  const ReadBytes read = [&](char* out, std::size_t size) { return reader.read(out, size); };
  while (reader.next(entry)) {
    const bool linked = entry.kind == EntryKind::hard_link;
    if (entry.kind != EntryKind::file && !linked) continue;
    const std::string name = plain_name(entry.name);
    if (!wanted(name)) continue;
    // Its bytes are elsewhere in the archive, and dropping it silently would lose data.
    if (linked) {
      reader.fail(
          fmt::format("is a hard link to {}; unpack the archive and use the folder", entry.target));
    }
    visit(name, entry.size, read);
  }
}

void visit_any(const fs::path& path, const Wanted& wanted, const Visit& visit) {
  if (fs::is_directory(path)) {
    visit_folder(path, wanted, visit);
  } else if (fs::exists(path)) {
    visit_archive(path, wanted, visit);
  } else {
    fail(path.string(), "there is no such folder or archive; check the path");
  }
}

// The buffer grows with what is there, so that a claim alone takes no memory.
std::string_view read_whole(const ReadBytes& read, int64_t limit, std::vector<char>& buffer,
                            const std::function<void()>& refuse) {
  const auto most = static_cast<std::size_t>(limit);
  for (std::size_t filled = 0;;) {
    if (filled == buffer.size()) buffer.resize(std::max(kReadPiece, 2 * filled));
    const std::size_t wanted = std::min(buffer.size(), most + 1) - filled;
    const std::size_t count = read(buffer.data() + filled, wanted);
    filled += count;
    if (filled > most) refuse();
    if (count < wanted) return {buffer.data(), filled};
  }
}

}  // namespace

void visit_files(const fs::path& path, const Wanted& wanted,
                 const std::function<void(const std::string&, std::string_view)>& visit,
                 int64_t limit) {
  std::vector<char> buffer;
  visit_any(path, wanted, [&](const std::string& name, int64_t claimed, const ReadBytes& read) {
    const auto refuse = [&] {
      fail(file_label(path, name),
           fmt::format("more than {} bytes; a file of a data set is not that large", limit));
    };
    if (claimed > limit) refuse();
    visit(name, read_whole(read, limit, buffer, refuse));
  });
}

void stream_files(const fs::path& path, const Wanted& wanted,
                  const std::function<void(const std::string&, const ReadBytes&)>& visit) {
  visit_any(path, wanted,
            [&](const std::string& name, int64_t, const ReadBytes& read) { visit(name, read); });
}

void stream_file(const fs::path& path, const std::function<void(const ReadBytes& read)>& visit) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rbe"),
                                                             std::fclose);
  if (!file) {
    fail(path.string(),
         fmt::format("cannot open: {}; check its permissions", std::strerror(errno)));
  }
  visit([&](char* out, std::size_t size) {
    const std::size_t count = std::fread(out, 1, size, file.get());
    if (count < size && std::ferror(file.get())) {
      fail(path.string(), fmt::format("cannot read: {}", std::strerror(errno)));
    }
    return count;
  });
}

void stream_unpacked(const fs::path& path,
                     const std::function<void(const ReadBytes& read)>& visit) {
  stream_file(path, [&](const ReadBytes& rest) {
    // The file may be a pipe, so what was looked at is given out again.
    char head[2];
    const std::string_view seen(head, rest(head, sizeof head));
    std::size_t given = 0;
    const ReadBytes whole = [&](char* out, std::size_t size) {
      const std::size_t again = seen.copy(out, size, given);
      given += again;
      return again + (again < size ? rest(out + again, size - again) : 0);
    };
    if (!is_gzip(seen)) return visit(whole);
    std::vector<char> buffer;
    GzipSource source(read_whole(whole, kMaxFileBytes, buffer,
                                 [&] {
                                   fail(path.string(),
                                        fmt::format("more than {} bytes gzip'ed; unpack it first",
                                                    kMaxFileBytes));
                                 }),
                      path.string());
    visit([&](char* out, std::size_t size) { return source.read(out, size); });
  });
}

std::vector<std::string> list_files(const fs::path& path) {
  if (fs::is_directory(path)) return names_in(path);
  std::vector<std::string> names;
  visit_any(
      path, [](const std::string&) { return true; },
      [&](const std::string& name, int64_t, const ReadBytes&) { names.push_back(name); });
  return names;
}

std::string file_label(const fs::path& path, const std::string& name) {
  return fs::is_directory(path) ? (path / name).string()
                                : fmt::format("{}: entry {}", path.string(), name);
}

std::string_view name_tail(std::string_view name, int components) {
  for (std::size_t at = name.size(); at-- > 0;) {
    if (name[at] == '/' && --components == 0) return name.substr(at + 1);
  }
  return components == 1 ? name : std::string_view{};
}

std::string common_folder(const std::vector<std::string>& names) {
  if (names.empty()) return "";
  std::string common = names[0];
  for (const std::string& name : names) {
    const auto [end, ignored] =
        std::mismatch(common.begin(), common.end(), name.begin(), name.end());
    common.erase(end, common.end());
  }
  const std::size_t slash = common.find_last_of('/');
  return slash == std::string::npos ? "" : common.substr(0, slash + 1);
}

bool is_hidden(std::string_view name) {
  for (;;) {
    const std::size_t slash = name.find('/');
    const std::string_view part = name.substr(0, slash);
    if (part.starts_with('.') || part == "__MACOSX") return true;
    if (slash == std::string_view::npos) return false;
    name.remove_prefix(slash + 1);
  }
}

}  // namespace rotrnn
