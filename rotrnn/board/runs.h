#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "rotrnn/board/beneath.h"

namespace rotrnn::board {

/// A run folder, found below one of the folders that were named.
struct RunInfo {
  std::string id;    // a pure function of folder and path, made of hexadecimal digits
  std::string name;  // the path below the folder, as it may be shown
  size_t root = 0;
  std::filesystem::path path;  // relative to the root
  // What its config says; empty or -1 when it cannot be read.
  std::string task, layer;
  int64_t seed = -1, steps = -1, depth = -1;
  // Runs that differ in nothing but the seed have the same; empty without a readable config.
  std::string group, group_name;
  int64_t updated = 0;  // seconds since 1970, of metrics.jsonl
};

/// A comparison of `rotrnn compare`: its compare.json.
struct CompareInfo {
  std::string id, name;
  size_t root = 0;
  std::filesystem::path path;
};

/// The runs and comparisons found.
struct Found {
  std::vector<RunInfo> runs;  // by name
  std::vector<CompareInfo> comparisons;
  bool all = true;  // false: there was too much to search all of it
};

/// Looks for runs below folders. Configs are read again only when they changed.
class RunFinder {
 public:
  /// std::runtime_error when one of them is not a folder.
  explicit RunFinder(const std::vector<std::filesystem::path>& roots);

  Found find();

  const Beneath& root(size_t number) const { return roots_[number]; }

 private:
  struct CachedConfig {
    int64_t size = 0, seconds = 0, nanoseconds = 0;
    std::string task, layer, group;
    int64_t seed = -1, steps = -1, depth = -1;
  };
  void walk(size_t root, const std::filesystem::path& path, int depth, size_t& budget,
            Found& found) const;
  void describe(RunInfo& run);

  std::vector<Beneath> roots_;
  std::vector<std::string> prefixes_;  // of names, by root
  std::map<std::string, CachedConfig> configs_;
};

/// The table of a comparison, reduced to what is shown; none when the file is not one.
std::optional<nlohmann::json> read_comparison(const Beneath& root, const CompareInfo& info);

}  // namespace rotrnn::board
