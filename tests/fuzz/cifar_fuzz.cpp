// Built and run by tests/fuzz/run.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string_view>

#include "rotrnn/data/tasks/cifar.h"

// Any bytes are records of 3,073 bytes with labels up to 9, in grey by the published formula, or
// the one documented error.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  std::size_t records = 0;
  try {
    rotrnn::parse_cifar({reinterpret_cast<const char*>(data), size}, "fuzz",
                        [&](int label, std::span<const uint8_t> pixels) {
                          const uint8_t* record = data + records++ * 3073;
                          if (label != record[0] || label > 9 || pixels.size() != 1024)
                            std::abort();
                          for (std::size_t i = 0; i < 1024; ++i) {
                            const uint32_t grey = 19595u * record[1 + i] +
                                                  38470u * record[1025 + i] +
                                                  7471u * record[2049 + i] + 32768u;
                            if (pixels[i] != grey >> 16) std::abort();
                          }
                        });
    if (records * 3073 != size) std::abort();
  } catch (const std::runtime_error&) {
    // The only way in which a bad file may end.
  }
  return 0;
}
