#pragma once

#include <filesystem>
#include <string>

namespace rotrnn {

/// The task or kind of data whose files are at a path, by their names; empty when nothing is
/// recognised. Folders are looked into as far as their first few thousand files, archives to their
/// end. std::runtime_error when there is nothing at the path.
std::string detect_task(const std::filesystem::path& path);

}  // namespace rotrnn
