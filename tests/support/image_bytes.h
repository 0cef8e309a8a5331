#pragma once

#include <zlib.h>

#include <array>
#include <bit>
#include <cstdint>
#include <string>
#include <vector>

// PNG and JPEG files made byte by byte from the formats' definitions, without their libraries.

namespace rotrnn::test {

inline std::string big_endian(uint32_t value, int bytes = 4) {
  std::string out;
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8)
    out += static_cast<char>(value >> shift);
  return out;
}

inline std::string png_chunk(const std::string& type, const std::string& data) {
  const std::string body = type + data;
  const uLong sum = crc32(0, reinterpret_cast<const Bytef*>(body.data()), body.size());
  return big_endian(static_cast<uint32_t>(data.size())) + body +
         big_endian(static_cast<uint32_t>(sum));
}

inline std::string deflated(const std::string& raw) {
  uLongf size = compressBound(raw.size());
  std::string out(size, '\0');
  compress(reinterpret_cast<Bytef*>(out.data()), &size, reinterpret_cast<const Bytef*>(raw.data()),
           raw.size());
  out.resize(size);
  return out;
}

inline std::string png_header(uint32_t width, uint32_t height, int bits, int colour,
                              int interlace = 0) {
  return big_endian(width) + big_endian(height) + static_cast<char>(bits) +
         static_cast<char>(colour) + std::string(2, '\0') + static_cast<char>(interlace);
}

/// `raw`: every row with the filter byte 0 before it. Colour types: 0 grey, 2 RGB, 3 palette, 4
/// grey and alpha, 6 RGB and alpha. `before` are chunks between header and pixels.
inline std::string png_bytes(const std::string& header, const std::string& raw,
                             const std::string& before = "") {
  return std::string("\x89PNG\r\n\x1a\n") + png_chunk("IHDR", header) + before +
         png_chunk("IDAT", deflated(raw)) + png_chunk("IEND", "");
}

/// Grey of 8 bits without interlacing, the plainest kind.
inline std::string grey_png(uint32_t width, uint32_t height, const std::vector<uint8_t>& pixels) {
  std::string raw;
  for (uint32_t y = 0; y < height; ++y) {
    raw += '\0';
    raw.append(reinterpret_cast<const char*>(pixels.data()) + y * width, width);
  }
  return png_bytes(png_header(width, height, 8, 0), raw);
}

/// A baseline JPEG of flat blocks of 8 × 8 pixels: blocks[i][c] is component c of block i, row by
/// row. One component is grey, three are Y, Cb, Cr without subsampling.
inline std::string jpeg_bytes(int across, int down, int components,
                              const std::vector<std::array<int, 3>>& blocks) {
  using namespace std::string_literals;
  const auto segment = [](int marker, const std::string& data) {
    return "\xff"s + static_cast<char>(marker) +
           big_endian(static_cast<uint32_t>(data.size() + 2), 2) + data;
  };
  std::string out = "\xff\xd8"s;
  out += segment(0xdb, "\0"s + std::string(64, '\x08'));  // every quantiser is 8
  std::string frame = "\x08"s + big_endian(8 * down, 2) + big_endian(8 * across, 2);
  frame += static_cast<char>(components);
  std::string scan(1, static_cast<char>(components));
  for (int c = 1; c <= components; ++c) {
    frame += static_cast<char>(c) + "\x11\0"s;
    scan += static_cast<char>(c) + "\0"s;
  }
  out += segment(0xc0, frame);
  // Differences of DC: twelve categories, all with codes of 4 bits. AC: only "end of block", 0.
  std::string dc(17, '\0'), ac(17, '\0');
  dc[4] = 12;
  for (char i = 0; i < 12; ++i) dc += i;
  ac[0] = 0x10;
  ac[1] = 1;
  out += segment(0xc4, dc) + segment(0xc4, ac + "\0"s) + segment(0xda, scan + "\0\x3f\0"s);
  std::string bits;
  const auto put = [&](unsigned value, int count) {
    for (int i = count - 1; i >= 0; --i) bits += static_cast<char>('0' + (value >> i & 1));
  };
  std::array<int, 3> last{};
  for (const auto& block : blocks) {
    for (int c = 0; c < components; ++c) {
      // The DC coefficient of a flat block is 8 (value - 128), and the quantiser divides by 8.
      const int difference = block[c] - 128 - last[c];
      last[c] = block[c] - 128;
      const int size = std::bit_width(static_cast<unsigned>(std::abs(difference)));
      put(static_cast<unsigned>(size), 4);
      put(static_cast<unsigned>(difference < 0 ? difference + (1 << size) - 1 : difference), size);
      put(0, 1);
    }
  }
  bits.append((8 - bits.size() % 8) % 8, '1');
  for (size_t i = 0; i < bits.size(); i += 8) {
    const auto byte = static_cast<char>(std::stoi(bits.substr(i, 8), nullptr, 2));
    out += byte;
    if (byte == '\xff') out += '\0';
  }
  return out + "\xff\xd9"s;
}

}  // namespace rotrnn::test
