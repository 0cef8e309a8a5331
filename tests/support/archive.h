#pragma once

#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

namespace rotrnn::test {

/// Name and bytes of files.
using Files = std::vector<std::pair<std::string, std::string>>;

/// An entry of a tar file, written by hand so that a test can make what no tool would. `type` is
/// the flag of the format: '0' file, '1' hard link, '2' symbolic link, '3' device, '5' folder.
inline std::string tar_entry(const std::string& name, const std::string& bytes, char type = '0',
                             const std::string& target = "", long long claimed_size = -1) {
  std::string header(512, '\0');
  auto put = [&](size_t at, const std::string& text) { header.replace(at, text.size(), text); };
  EXPECT_LE(name.size(), 100u);
  put(0, name);
  put(100, "0000644");
  put(108, "0000000");
  put(116, "0000000");
  put(124, fmt::format("{:011o}",
                       claimed_size < 0 ? static_cast<long long>(bytes.size()) : claimed_size));
  put(136, "00000000000");
  put(148, "        ");
  put(156, std::string(1, type));
  put(157, target);
  put(257, std::string("ustar\0"
                       "00",
                       8));
  unsigned sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  put(148, fmt::format("{:06o}", sum) + '\0' + ' ');
  return header + bytes + std::string((512 - bytes.size() % 512) % 512, '\0');
}

/// Two empty blocks end a tar file.
inline std::string tar_end() {
  return std::string(1024, '\0');
}

/// The bytes of a tar file.
inline std::string tar_bytes(const Files& files) {
  std::string out;
  for (const auto& [name, bytes] : files) {
    out += name.ends_with('/') ? tar_entry(name, "", '5') : tar_entry(name, bytes);
  }
  return out + tar_end();
}

/// Writes an archive of the form that its name says: .tar, .tar.gz, .tgz, .tar.bz2, .tar.xz, .zip.
inline void write_archive(const std::filesystem::path& path, const Files& files) {
  const std::string name = path.filename().string();
  archive* a = archive_write_new();
  name.ends_with(".zip") ? archive_write_set_format_zip(a) : archive_write_set_format_ustar(a);
  if (name.ends_with("gz")) archive_write_add_filter_gzip(a);
  if (name.ends_with("bz2")) archive_write_add_filter_bzip2(a);
  if (name.ends_with("xz")) archive_write_add_filter_xz(a);
  ASSERT_EQ(archive_write_open_filename(a, path.c_str()), ARCHIVE_OK);
  for (const auto& [file, bytes] : files) {
    archive_entry* entry = archive_entry_new();
    archive_entry_set_pathname(entry, file.c_str());
    archive_entry_set_filetype(entry, file.ends_with('/') ? AE_IFDIR : AE_IFREG);
    archive_entry_set_perm(entry, 0644);
    archive_entry_set_size(entry, static_cast<la_int64_t>(bytes.size()));
    EXPECT_EQ(archive_write_header(a, entry), ARCHIVE_OK);
    EXPECT_EQ(archive_write_data(a, bytes.data(), bytes.size()),
              static_cast<la_ssize_t>(bytes.size()));
    archive_entry_free(entry);
  }
  EXPECT_EQ(archive_write_free(a), ARCHIVE_OK);
}

/// Writes files below a folder.
inline void write_files(const std::filesystem::path& folder, const Files& files) {
  for (const auto& [name, bytes] : files) {
    const std::filesystem::path path = folder / name;
    std::filesystem::create_directories(name.ends_with('/') ? path : path.parent_path());
    if (!name.ends_with('/')) std::ofstream(path, std::ios::binary) << bytes;
  }
}

}  // namespace rotrnn::test
