// Built and run by tests/fuzz/run.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>

#include "rotrnn/io/checksums.h"
#include "rotrnn/training/checkpoint/checkpoint.h"

// Any bytes are a list of checksums that is written as it was read, a state.json that writes and
// reads back as itself, or the one documented error.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    if (rotrnn::checksums_text(rotrnn::parse_checksums(text, "fuzz")) != text) std::abort();
  } catch (const std::runtime_error&) {
    // The only way in which a bad list may end.
  }
  try {
    const rotrnn::CheckpointHeader header = rotrnn::parse_header(text, "fuzz");
    const std::string written = rotrnn::header_text(header);
    if (rotrnn::header_text(rotrnn::parse_header(written, "again")) != written) std::abort();
  } catch (const std::runtime_error&) {
    // The only way in which a bad state.json may end.
  }
  return 0;
}
