#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

namespace rotrnn {

/// More than any data set here unpacks to.
inline constexpr int64_t kMaxUnpackedBytes = int64_t{200} << 30;

/// The same of files, folders and links.
inline constexpr int64_t kMaxUnpackedEntries = 20'000'000;

/// What to unpack, and how much of it.
struct UnpackOptions {
  std::function<bool(const std::string& name)> wanted;  // empty: everything
  int64_t limit = kMaxUnpackedBytes;                    // bytes of all files together
  int64_t entries = kMaxUnpackedEntries;
};

/// Unpacks an archive to `folder`, which appears whole or not at all and replaces what was there.
/// Everything stays below `folder`: an entry with an absolute name, with "..", a link that leads
/// out, or a device throws std::runtime_error that names it, and nothing is left behind.
void unpack_archive(const std::filesystem::path& archive, const std::filesystem::path& folder,
                    const UnpackOptions& options = {});

}  // namespace rotrnn
