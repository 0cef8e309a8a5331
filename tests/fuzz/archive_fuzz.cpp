// tests/fuzz/run build/fuzz 600 archive
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

#include "rotrnn/io/files.h"
#include "rotrnn/io/unpack.h"

namespace fs = std::filesystem;

// Any bytes as an archive: read whole or refused, and nothing is written beside the folder.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  // In memory where there is such a folder: unpacking flushes the file system.
  static const fs::path root =
      (fs::exists("/dev/shm") ? fs::path("/dev/shm") : fs::temp_directory_path()) /
      ("rotrnn-archive-fuzz-" + std::to_string(::getpid()));
  fs::create_directories(root);
  const fs::path archive = root / "a";
  std::ofstream(archive, std::ios::binary)
      .write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
  try {
    rotrnn::visit_files(
        archive, [](const std::string& name) { return !name.empty(); },
        [](const std::string&, std::string_view) {}, 1 << 20);
  } catch (const std::runtime_error&) {
    // The only way in which a bad archive may end.
  }
  rotrnn::UnpackOptions options;
  options.limit = 1 << 20;
  try {
    rotrnn::unpack_archive(archive, root / "out", options);
  } catch (const std::runtime_error&) {
    if (fs::exists(root / "out")) std::abort();
  }
  fs::remove_all(root / "out");
  for (const auto& entry : fs::directory_iterator(root)) {
    if (entry.path() != archive) std::abort();
  }
  return 0;
}
