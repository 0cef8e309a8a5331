#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace rotrnn {

/// Files of one kind of users' data.
struct KindCount {
  std::string task;  // that reads them
  int64_t files = 0;
};

/// What is at a path.
struct Detected {
  std::string task;              // empty: nothing is recognised
  bool own = false;              // users' data, not a public set
  std::vector<KindCount> kinds;  // those seen, the most frequent first
  int64_t files = 0;             // all that were seen
  std::string unknown;           // the name of one of no known kind
};

/// Looks at the names of the files, as detect_task().
Detected detect(const std::filesystem::path& path);

/// Whether the task that reads this kind of users' data takes a file of that name, .gz included.
bool is_of_kind(std::string_view task, std::string_view name);

/// The task or kind of data whose files are at a path, by their names; empty when nothing is
/// recognised. Folders are looked into as far as their first few thousand files, archives to their
/// end. std::runtime_error when there is nothing at the path.
std::string detect_task(const std::filesystem::path& path);

}  // namespace rotrnn
