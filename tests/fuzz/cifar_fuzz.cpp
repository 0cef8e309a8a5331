// tests/fuzz/run build/fuzz 600 cifar
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string_view>

#include "rotrnn/data/cifar.h"

// Any bytes give whole records of known labels, or the one documented error.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  std::size_t records = 0;
  try {
    rotrnn::parse_cifar({reinterpret_cast<const char*>(data), size}, "fuzz",
                        [&](int label, std::span<const uint8_t> pixels) {
                          if (label < 0 || label > 9 || pixels.size() != 1024) std::abort();
                          ++records;
                        });
    if (records * rotrnn::kCifarRecord != size || size == 0) std::abort();
  } catch (const std::runtime_error&) {
    // The only way in which a bad file may end.
  }
  return 0;
}
