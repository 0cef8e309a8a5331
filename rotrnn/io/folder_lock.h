#pragma once

#include <filesystem>

namespace rotrnn {

/// Holds a folder for one process as long as it lives: two that train into the same run folder
/// would write over each other. The system drops it with the process, however that ends; what a
/// killed one leaves of the file `.rotrnn.lock` locks nothing.
class FolderLock {
 public:
  /// std::runtime_error when another process holds the folder, with its number and host, or when
  /// the folder cannot be written.
  explicit FolderLock(const std::filesystem::path& folder);
  ~FolderLock();

  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  std::filesystem::path file_;
  int descriptor_ = -1;
};

}  // namespace rotrnn
