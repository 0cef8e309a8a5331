// clang++ -std=c++20 -g -O1 -fsanitize=fuzzer,address -I. tests/fuzz/image_fuzz.cpp
//   rotrnn/io/formats/image.cpp rotrnn/io/atomic_file.cpp -lfmt -lpng -ljpeg -o image_fuzz
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string_view>

#include "rotrnn/io/formats/image.h"

// Any bytes give a picture of the size it says, which a PNG file keeps, or the documented error.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  const std::string_view content(reinterpret_cast<const char*>(data), size);
  try {
    const rotrnn::Image image = rotrnn::decode_image(content, "fuzz");
    const int64_t bytes = image.width * image.height * image.channels;
    if (static_cast<int64_t>(image.pixels.size()) != bytes || bytes == 0) std::abort();
    if (bytes > 1 << 16) return 0;
    if (rotrnn::decode_image(rotrnn::encode_png(image), "again") != image) std::abort();
    if (static_cast<int64_t>(to_grey(image).pixels.size()) != image.width * image.height) {
      std::abort();
    }
  } catch (const std::runtime_error&) {
    // The only way in which a bad file may end.
  }
  return 0;
}
