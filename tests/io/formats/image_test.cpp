#include "rotrnn/io/formats/image.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cmath>

#include "rotrnn/base/random.h"
#include "rotrnn/io/atomic_file.h"
#include "tests/support/folder.h"
#include "tests/support/image_bytes.h"

namespace rotrnn {
namespace {

using namespace std::string_literals;
using test::big_endian;
using test::jpeg_bytes;
using test::png_bytes;
using test::png_chunk;
using test::png_header;
using Pixels = std::vector<uint8_t>;

std::string error_of(const std::string& bytes) {
  return test::message_of<std::runtime_error>([&] { decode_image(bytes, "a.png"); });
}

void expect_contains(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "\"" << text << "\" lacks \"" << part << "\"";
}

void expect_image(const std::string& bytes, int64_t width, int64_t height, int64_t channels,
                  const Pixels& pixels) {
  const Image image = decode_image(bytes, "f");
  EXPECT_EQ(image.width, width);
  EXPECT_EQ(image.height, height);
  EXPECT_EQ(image.channels, channels);
  EXPECT_EQ(image.pixels, pixels);
}

TEST(Image, PngOfEveryColourType) {
  expect_image(png_bytes(png_header(3, 2, 8, 0), "\0\x00\x80\xff\0\x01\x02\x03"s), 3, 2, 1,
               {0, 128, 255, 1, 2, 3});
  expect_image(png_bytes(png_header(2, 1, 8, 2), "\0\x01\x02\x03\xfd\xfe\xff"s), 2, 1, 3,
               {1, 2, 3, 253, 254, 255});
  // Alpha is dropped, also where it says invisible.
  expect_image(png_bytes(png_header(2, 1, 8, 4), "\0\x40\x00\x41\xff"s), 2, 1, 1, {64, 65});
  expect_image(png_bytes(png_header(2, 1, 8, 6), "\0\x01\x02\x03\x00\x07\x08\x09\x80"s), 2, 1, 3,
               {1, 2, 3, 7, 8, 9});
  const std::string palette = png_chunk("PLTE", "\xff\0\0\x10\x20\x30\0\0\xff"s);
  expect_image(png_bytes(png_header(3, 1, 8, 3), "\0\x01\x02\x00"s, palette), 3, 1, 3,
               {16, 32, 48, 0, 0, 255, 255, 0, 0});
  expect_image(png_bytes(png_header(3, 1, 2, 3), "\0\x60"s, palette), 3, 1, 3,
               {16, 32, 48, 0, 0, 255, 255, 0, 0});
  // A colour that is marked as transparent.
  expect_image(png_bytes(png_header(2, 1, 8, 0), "\0\x07\x08"s, png_chunk("tRNS", "\0\x07"s)), 2, 1,
               1, {7, 8});
}

TEST(Image, PngOfEveryDepth) {
  expect_image(png_bytes(png_header(9, 1, 1, 0), "\0\xa0\x80"s), 9, 1, 1,
               {255, 0, 255, 0, 0, 0, 0, 0, 255});
  expect_image(png_bytes(png_header(4, 1, 2, 0), "\0\x1b"s), 4, 1, 1, {0, 85, 170, 255});
  expect_image(png_bytes(png_header(2, 1, 4, 0), "\0\x1f"s), 2, 1, 1, {17, 255});
  // 16 bits: v / 257, rounded.
  expect_image(png_bytes(png_header(4, 1, 16, 0), "\0\x00\x00\x80\x80\xff\xff\x12\xff"s), 4, 1, 1,
               {0, 128, 255, 19});
  expect_image(png_bytes(png_header(1, 1, 16, 2), "\0\x01\x01\x40\x40\xfe\xfe"s), 1, 1, 3,
               {1, 64, 254});
}

// Adam7: seven smaller pictures of every pixel (x0 + i dx, y0 + j dy), one after the other.
TEST(Image, InterlacedPngIsThePicture) {
  Random random(1, RandomSite::initialise);
  const int width = 13, height = 11;
  Pixels pixels(width * height);
  for (auto& p : pixels) p = static_cast<uint8_t>(random.below(256));
  constexpr int kPasses[7][4] = {{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4},
                                 {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}};
  std::string raw;
  for (const auto& [x0, y0, dx, dy] : kPasses) {
    for (int y = y0; y < height; y += dy) {
      raw += '\0';
      for (int x = x0; x < width; x += dx) raw += static_cast<char>(pixels[y * width + x]);
    }
  }
  expect_image(png_bytes(png_header(width, height, 8, 0, 1), raw), width, height, 1, pixels);
}

TEST(Image, JpegOfFlatBlocks) {
  // Grey is exact: a flat block is its DC coefficient.
  const Image grey = decode_image(jpeg_bytes(2, 1, 1, {{{200, 0, 0}}, {{3, 0, 0}}}), "f");
  EXPECT_EQ(grey.channels, 1);
  ASSERT_EQ(grey.pixels.size(), 128u);
  for (int i = 0; i < 128; ++i) EXPECT_EQ(grey.pixels[i], i % 16 < 8 ? 200 : 3);

  const std::vector<std::array<int, 3>> blocks{
      {81, 90, 240}, {145, 54, 34}, {41, 240, 110}, {128, 128, 128}};
  const Image colour = decode_image(jpeg_bytes(2, 2, 3, blocks), "f");
  EXPECT_EQ(colour.width, 16);
  EXPECT_EQ(colour.height, 16);
  ASSERT_EQ(colour.channels, 3);
  for (int block = 0; block < 4; ++block) {
    const auto [y, cb, cr] = blocks[block];
    const double expected[3] = {y + 1.402 * (cr - 128),
                                y - 0.344136 * (cb - 128) - 0.714136 * (cr - 128),
                                y + 1.772 * (cb - 128)};
    const int at = ((block / 2) * 8 + 3) * 16 + (block % 2) * 8 + 5;
    for (int c = 0; c < 3; ++c) {
      const double clipped = std::clamp(std::round(expected[c]), 0.0, 255.0);
      // libjpeg rounds its tables of products one by one.
      EXPECT_NEAR(colour.pixels[3 * at + c], clipped, 1) << "block " << block << " channel " << c;
    }
  }
}

TEST(Image, GreyIsTheFormula) {
  Image image{4, 1, 3, {255, 0, 0, 0, 255, 0, 0, 0, 255, 255, 255, 255}};
  const Image grey = to_grey(image);
  EXPECT_EQ(grey.channels, 1);
  EXPECT_EQ(grey.pixels, (Pixels{76, 150, 29, 255}));  // 76.24, 149.69, 29.07 of ITU-R 601
  EXPECT_EQ(to_grey(grey), grey);
  for (int v = 0; v < 256; ++v) {
    const auto b = static_cast<uint8_t>(v);
    EXPECT_EQ(to_grey({1, 1, 3, {b, b, b}}).pixels, Pixels{b});
  }
}

TEST(Image, WrittenPngIsReadBack) {
  Random random(2, RandomSite::initialise);
  for (const int64_t channels : {1, 3}) {
    for (const auto& [width, height] :
         std::vector<std::pair<int, int>>{{1, 1}, {32, 32}, {7, 300}}) {
      Image image{width, height, channels, Pixels(width * height * channels)};
      for (auto& p : image.pixels) p = static_cast<uint8_t>(random.below(256));
      const std::string bytes = encode_png(image);
      EXPECT_EQ(decode_image(bytes, "f"), image);
      EXPECT_EQ(bytes.substr(16, 8), big_endian(width) + big_endian(height));
      EXPECT_EQ(bytes.substr(24, 2), "\x08"s + (channels == 3 ? "\x02"s : "\0"s));
    }
  }
  EXPECT_THROW(encode_png({2, 2, 1, Pixels(3)}), std::invalid_argument);
  EXPECT_THROW(encode_png({0, 0, 1, {}}), std::invalid_argument);
}

TEST(Image, FilesAreNamed) {
  EXPECT_EQ(error_of(""), "a.png: the file is empty; a picture was expected");
  expect_contains(error_of("GIF89a"), "a.png: the file starts with 47 49 46 38, neither PNG");
  expect_contains(error_of("\x89"s), "starts with 89,");
  const test::Folder folder;
  write_file_atomically(folder / "x.png", "");
  const std::string message =
      test::message_of<std::runtime_error>([&] { read_image(folder / "x.png"); });
  expect_contains(message, (folder / "x.png").string() + ": the file is empty");
  EXPECT_THROW(read_image(folder / "nowhere.png"), std::runtime_error);
  write_file_atomically(folder / "y.png", test::grey_png(2, 1, {5, 6}));
  EXPECT_EQ(read_image(folder / "y.png").pixels, (Pixels{5, 6}));
}

TEST(Image, CutFilesAreErrors) {
  Random random(3, RandomSite::initialise);
  Pixels pixels(40 * 30);
  for (auto& p : pixels) p = static_cast<uint8_t>(random.below(256));
  const std::string png = test::grey_png(40, 30, pixels);
  std::vector<std::array<int, 3>> blocks(12);
  for (auto& block : blocks)
    for (int& value : block) value = static_cast<int>(random.below(256));
  const std::string jpeg = jpeg_bytes(4, 3, 3, blocks);
  for (const std::string& whole : {png, jpeg}) {
    EXPECT_NO_THROW(decode_image(whole, "f"));
    for (size_t size = 0; size < whole.size(); size += size + 20 < whole.size() ? 7 : 1) {
      expect_contains(error_of(whole.substr(0, size)), "a.png: ");
    }
  }
  expect_contains(error_of(png.substr(0, png.size() - 12)), "cut off");
  expect_contains(error_of(jpeg.substr(0, jpeg.size() / 2)), "cut JPEG file (Premature end");
  std::string damaged = png;
  damaged[png.size() - 20] ^= 1;
  expect_contains(error_of(damaged), "a.png: damaged PNG file");
}

TEST(Image, AbsurdSizesTakeNoMemory) {
  rusage before{}, after{};
  getrusage(RUSAGE_SELF, &before);
  const auto png = [](uint32_t width, uint32_t height, int bits = 8, int colour = 0) {
    return error_of(png_bytes(png_header(width, height, bits, colour), "\0\0"s));
  };
  expect_contains(png(0xffffffff, 1), "a picture of 4294967295 × 1 pixels; at most 16384 a side");
  expect_contains(png(0x7fffffff, 0x7fffffff), "at most 16384 a side");
  expect_contains(png(16384, 16384), "at most 16384 a side and 67108864 in all");
  expect_contains(png(0, 5), "a picture of 0 × 5 pixels");
  expect_contains(png(8192, 8192), "cannot hold a picture of 8192 × 8192");
  expect_contains(png(8192, 8192, 16, 6), "cannot hold a picture");
  std::string jpeg = jpeg_bytes(1, 1, 1, {{{9, 0, 0}}});
  const size_t frame = jpeg.find("\xff\xc0"s);
  jpeg.replace(frame + 5, 4, "\x80\0\x80\0"s);
  expect_contains(error_of(jpeg), "a picture of 32768 × 32768 pixels");
  jpeg.replace(frame + 5, 4, "\x20\0\x20\0"s);
  expect_contains(error_of(jpeg), "cut JPEG file");
  getrusage(RUSAGE_SELF, &after);
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 50'000) << "KB";
}

TEST(Image, FourColoursAreRefused) {
  std::string jpeg = jpeg_bytes(1, 1, 3, {{{9, 0, 0}}});
  const size_t frame = jpeg.find("\xff\xc0"s);
  std::string four = jpeg.substr(frame, 19);
  four[3] = 20;  // length with one component more
  four[9] = 4;
  four += "\x04\x11\0"s;
  expect_contains(error_of(jpeg.substr(0, frame) + four + jpeg.substr(frame + 19)), "CMYK");
}

}  // namespace
}  // namespace rotrnn
