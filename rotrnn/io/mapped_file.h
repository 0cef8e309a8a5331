#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>

namespace rotrnn {

/// A file in memory, its pages read when they are touched. It must not be truncated while it is
/// used.
struct MappedFile {
  std::shared_ptr<const std::byte> data;
  size_t size = 0;
};

/// Maps a regular file; std::runtime_error with the path and the reason when it cannot be.
MappedFile map_file(const std::filesystem::path& file);

}  // namespace rotrnn
