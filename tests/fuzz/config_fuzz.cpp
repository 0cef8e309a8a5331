// Built and run by tests/fuzz/run.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>

#include "rotrnn/training/config/config.h"

// Any text is a config that writes and reads back as itself, or the one documented error.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    const rotrnn::Config config = rotrnn::parse_config(text, "fuzz");
    const std::string written = rotrnn::to_toml(config);
    if (rotrnn::to_toml(rotrnn::parse_config(written, "again")) != written) std::abort();
  } catch (const std::invalid_argument&) {
    // The only way in which a bad config may end.
  }
  return 0;
}
