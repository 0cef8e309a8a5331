#pragma once

#include <gtest/gtest.h>

#include <string>

#include "tests/support/archive.h"
#include "tests/support/folder.h"
#include "tests/support/records.h"

namespace rotrnn::test {

/// What a reader makes of a path, in the order of names.
inline Records read_sorted(Reader reader, const std::filesystem::path& path,
                           const TaskOptions& options = {}, bool labelled = true,
                           Split split = Split::any) {
  RecordWriter out;
  reader({options, path, split, labelled, 1}, out);
  return out.finish(RecordWriter::Order::by_name);
}

inline void expect_same(const Records& a, const Records& b) {
  EXPECT_EQ(a.form, b.form);
  EXPECT_EQ(names(a), names(b));
  EXPECT_EQ(labels(a), labels(b));
  EXPECT_EQ(splits(a), splits(b));
  ASSERT_EQ(a.sequences.size(), b.sequences.size());
  for (int64_t i = 0; i < a.sequences.size(); ++i) EXPECT_EQ(text(a, i), text(b, i)) << i;
}

/// Reads files as a folder and as archives, which must all give the same, and returns it.
inline Records read_everywhere(Reader reader, const Files& files, const TaskOptions& options = {}) {
  const Folder folder;
  write_files(folder / "set", files);
  Records out = read_sorted(reader, folder / "set", options);
  for (const char* name : {"a.tar.gz", "a.zip"}) {
    SCOPED_TRACE(name);
    // Another order, and one more folder in front.
    Files moved(files.rbegin(), files.rend());
    for (auto& [file, bytes] : moved) file.insert(0, "./top/");
    write_archive(folder / name, name == std::string("a.zip") ? files : moved);
    expect_same(read_sorted(reader, folder / name, options), out);
  }
  return out;
}

/// The message of the error that files give, in a folder named "set" and with that path cut off.
template <typename Error = std::runtime_error>
std::string error_of_files(Reader reader, const Files& files, const TaskOptions& options = {},
                           bool labelled = true) {
  const Folder folder;
  write_files(folder.path(), files);
  std::string message =
      message_of<Error>([&] { read_sorted(reader, folder.path(), options, labelled); });
  const std::string path = folder.path().string();
  for (size_t at; (at = message.find(path)) != std::string::npos;) {
    message.replace(at, path.size(), "set");
  }
  return message;
}

/// The same for an archive a.tar.gz of these files, cut to a share of its bytes.
inline std::string error_of_cut_archive(Reader reader, const Files& files,
                                        const TaskOptions& options = {}) {
  const Folder folder;
  write_archive(folder / "a.tar.gz", files);
  std::filesystem::resize_file(folder / "a.tar.gz",
                               std::filesystem::file_size(folder / "a.tar.gz") * 3 / 4);
  return message_of<std::runtime_error>([&] { read_sorted(reader, folder / "a.tar.gz", options); });
}

inline void expect_contains(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "\"" << text << "\" lacks \"" << part << "\"";
}

}  // namespace rotrnn::test
