#pragma once

#include <filesystem>

namespace rotrnn {

/// Holds a folder for one process as long as it lives: two that train into the same run folder
/// would write over each other. The system drops it with the process, however that ends.
class FolderLock {
 public:
  /// std::runtime_error when another process holds the folder.
  explicit FolderLock(const std::filesystem::path& folder);
  ~FolderLock();

  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int descriptor_ = -1;
};

}  // namespace rotrnn
