// clang++ -std=c++20 -g -O1 -fsanitize=fuzzer,address -I. tests/fuzz/idx_fuzz.cpp
//   rotrnn/io/formats/idx.cpp rotrnn/io/gzip.cpp rotrnn/io/atomic_file.cpp -lfmt -lz -o idx_fuzz
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string_view>

#include "rotrnn/io/formats/idx.h"

// Any bytes give an array of the size its shape says, or the one documented error.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  const std::string_view content(reinterpret_cast<const char*>(data), size);
  for (const std::size_t dimensions : {1, 3}) {
    try {
      const rotrnn::IdxArray array = rotrnn::parse_idx(content, "fuzz", dimensions);
      std::size_t count = 1;
      for (const int64_t n : array.shape) count *= static_cast<std::size_t>(n);
      if (array.shape.size() != dimensions || array.data.size() != count) std::abort();
    } catch (const std::runtime_error&) {
      // The only way in which a bad file may end.
    }
  }
  return 0;
}
