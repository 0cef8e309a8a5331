#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

// Pictures in the two formats that data sets come in, PNG and JPEG, as 8-bit grey or RGB.

namespace rotrnn {

/// Rows from the top, pixels from the left, one byte per channel.
struct Image {
  int64_t width = 0, height = 0;
  int64_t channels = 1;         // 1: grey, 3: red, green, blue
  std::vector<uint8_t> pixels;  // [height, width, channels]

  bool operator==(const Image&) const = default;
};

/// Larger pictures are refused before memory is taken for them.
inline constexpr int64_t kImageSideMax = 16'384, kImagePixelsMax = int64_t{1} << 26;

/// Decodes PNG or JPEG, whichever the first bytes say; 16 bits become 8, palettes their colours,
/// alpha is dropped. A file that is empty, cut, damaged, too large or of another format throws
/// std::runtime_error `name: what was seen; what to do`.
Image decode_image(std::string_view content, const std::string& name);

/// Reads a file.
Image read_image(const std::filesystem::path& file);

/// Grey by L = (19595 R + 38470 G + 7471 B + 32768) >> 16; grey pictures stay as they are.
Image to_grey(Image image);

/// The bytes of a PNG file, without loss.
std::string encode_png(const Image& image);

}  // namespace rotrnn
