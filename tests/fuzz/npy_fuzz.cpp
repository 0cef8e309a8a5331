// clang++ -std=c++20 -g -O1 -fsanitize=fuzzer,address,undefined -I. tests/fuzz/npy_fuzz.cpp
//   rotrnn/io/formats/npy.cpp rotrnn/io/atomic_file.cpp rotrnn/base/text/text_place.cpp
//   rotrnn/base/text/utf8.cpp -lfmt -o npy_fuzz
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "rotrnn/io/formats/npy.h"

// Any bytes give an array of the size its shape says, or the one documented error.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  try {
    const rotrnn::NpyArray array(std::string(reinterpret_cast<const char*>(data), size), "fuzz");
    int64_t count = 1;
    for (const int64_t n : array.shape()) count = n == 0 ? 0 : count * n;
    if (array.size() != count) std::abort();
    if (static_cast<int64_t>(array.numbers().size()) != count) std::abort();
    std::vector<float> row(static_cast<std::size_t>(array.row_size()));
    for (int64_t i = 0; i < array.rows() && count > 0; ++i) array.copy_row(i, row.data());
    array.integers();
  } catch (const std::runtime_error&) {
    // The only way in which a bad file may end.
  }
  return 0;
}
