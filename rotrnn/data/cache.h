#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "rotrnn/data/records.h"

// Decoded data on disk: one file per set, named by the content of the files it was read from and by
// the settings that change what is read. It is mapped, not read, so a second start takes no time
// and sets larger than the memory work.

namespace rotrnn {

/// Sets of fewer bytes are not kept: reading or making them anew takes no time.
inline constexpr int64_t kSmallSet = int64_t{4} << 20;

/// The name of a set in the cache: a checksum of the content of its files, of the settings that
/// change what is read or made, and of the version of the format. Empty when it is not to be kept.
std::string cache_key(const TaskOptions& options, int threads);

/// The set of that name, or nothing when there is none or it is damaged.
std::optional<Records> load_cached(const std::filesystem::path& folder, const std::string& key);

/// Keeps a set, whole or not at all; std::runtime_error when it cannot be written.
void save_cached(const std::filesystem::path& folder, const std::string& key,
                 const Records& records);

/// What is in a cache folder: number of sets and their bytes. With `clear`, they are removed.
struct CacheSize {
  int64_t sets = 0, bytes = 0;
};
CacheSize cache_size(const std::filesystem::path& folder, bool clear);

}  // namespace rotrnn
