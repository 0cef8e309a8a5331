// clang++ -std=c++20 -g -O1 -fsanitize=fuzzer,address -I.
//   tests/fuzz/pathfinder_metadata_fuzz.cpp rotrnn/data/tasks/pathfinder/pathfinder_metadata.cpp
//   rotrnn/base/text/text_place.cpp rotrnn/base/text/utf8.cpp -lfmt -o pathfinder_metadata_fuzz
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string_view>

#include "rotrnn/data/tasks/pathfinder/pathfinder_metadata.h"

// Any bytes give entries below the folder with a label of 0 or 1, or the one documented error.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  const std::string_view content(reinterpret_cast<const char*>(data), size);
  try {
    for (const auto& e : rotrnn::parse_pathfinder_metadata(content, "fuzz")) {
      if (e.label != 0 && e.label != 1) std::abort();
      if (e.line < 1 || e.file.empty() || e.file[0] == '/') std::abort();
      if (("/" + e.file + "/").find("/../") != std::string::npos) std::abort();
    }
  } catch (const std::runtime_error&) {
    // The only way in which a bad file may end.
  }
  return 0;
}
