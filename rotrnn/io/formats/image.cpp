#include "rotrnn/io/formats/image.h"

#include <fmt/format.h>

#include <cstdio>  // before jpeglib.h, which uses FILE

#include <jerror.h>
#include <jpeglib.h>
#include <png.h>

#include <algorithm>
#include <array>
#include <csetjmp>
#include <stdexcept>

#include "rotrnn/base/fail.h"
#include "rotrnn/io/atomic_file.h"

namespace rotrnn {
namespace {

constexpr std::string_view kPngMagic = "\x89PNG\r\n\x1a\n", kJpegMagic = "\xff\xd8\xff";

void check_size(const std::string& name, int64_t width, int64_t height) {
  if (width <= 0 || height <= 0) {
    fail(name, fmt::format("a picture of {} × {} pixels; the file is damaged", width, height));
  }
  if (width > kImageSideMax || height > kImageSideMax || width * height > kImagePixelsMax) {
    fail(name, fmt::format("a picture of {} × {} pixels; at most {} a side and {} in all are read, "
                           "make it smaller",
                           width, height, kImageSideMax, kImagePixelsMax));
  }
}

// PNG

uint32_t big_endian(std::string_view content, std::size_t at) {
  uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<uint8_t>(content[at + i]);
  return value;
}

// Walks from chunk to chunk, since libpng is content with a file that ends after its last pixel.
void check_png_chunks(std::string_view content, const std::string& name) {
  for (std::size_t at = kPngMagic.size();;) {
    if (content.size() - at < 12) {
      fail(name, fmt::format("offset {}: the PNG file ends before its last part; it is cut off",
                             content.size()));
    }
    const std::size_t size = big_endian(content, at);
    const std::string_view type = content.substr(at + 4, 4);
    if (size > content.size() - at - 12) {
      fail(name, fmt::format("offset {}: a part of the PNG file has {} bytes, {} are left; it is "
                             "cut off or damaged",
                             at, size, content.size() - at - 12));
    }
    if (type == "IEND") return;
    at += size + 12;
  }
}

// Width, height, bits and colour type stand at fixed places. Deflate packs 1,032 bytes into one at
// most, so a header cannot promise more than that.
void check_png_header(std::string_view content, const std::string& name) {
  if (content.size() < 33 || content.substr(12, 4) != "IHDR") {
    fail(name, "the PNG file has no header; it is cut off or damaged");
  }
  const int64_t width = big_endian(content, 16), height = big_endian(content, 20);
  check_size(name, width, height);
  const int64_t bits = static_cast<uint8_t>(content[24]);
  const int64_t channels = (content[25] & 2) && !(content[25] & 1) ? 3 : 1;
  if (width * height / 8 * bits * channels / 1032 > static_cast<int64_t>(content.size())) {
    fail(name, fmt::format("{} bytes cannot hold a picture of {} × {} pixels; the file is cut off "
                           "or damaged",
                           content.size(), width, height));
  }
}

// libpng's simplified interface never jumps: it returns, and this frees what it holds.
struct PngImage : png_image {
  PngImage() : png_image{} { version = PNG_IMAGE_VERSION; }
  ~PngImage() { png_image_free(this); }
  PngImage(const PngImage&) = delete;
  PngImage& operator=(const PngImage&) = delete;
};

Image decode_png(std::string_view content, const std::string& name) {
  check_png_header(content, name);
  check_png_chunks(content, name);
  PngImage png;
  if (!png_image_begin_read_from_memory(&png, content.data(), content.size())) {
    fail(name, fmt::format("damaged PNG file ({})", png.message));
  }
  check_size(name, png.width, png.height);
  png.flags |= PNG_IMAGE_FLAG_16BIT_sRGB;  // 16 bits are finer steps of the same scale
  // Alpha and colour as in the file, so that libpng neither blends nor mixes its own grey.
  png.format &= PNG_FORMAT_FLAG_COLOR | PNG_FORMAT_FLAG_ALPHA;
  const std::size_t stored = PNG_IMAGE_SAMPLE_CHANNELS(png.format);
  Image image{png.width, png.height, png.format & PNG_FORMAT_FLAG_COLOR ? 3 : 1, {}};
  image.pixels.resize(PNG_IMAGE_SIZE(png));
  if (!png_image_finish_read(&png, nullptr, image.pixels.data(), 0, nullptr)) {
    fail(name, fmt::format("damaged PNG file ({})", png.message));
  }
  const auto kept = static_cast<std::size_t>(image.channels);
  if (stored == kept) return image;
  const std::size_t count = image.pixels.size() / stored;
  for (std::size_t i = 0; i < count; ++i) {
    std::copy_n(image.pixels.begin() + i * stored, kept, image.pixels.begin() + i * kept);
  }
  image.pixels.resize(count * kept);
  return image;
}

// JPEG

// libjpeg reports an error by a call that must not return. Every entry below sets the place to jump
// back to in a frame of its own, which holds nothing that has to be destroyed.
class JpegReader {
 public:
  JpegReader() {
    info_.err = jpeg_std_error(&errors_);
    errors_.error_exit = [](j_common_ptr info) { self(info).jump(); };
    errors_.emit_message = [](j_common_ptr info, int level) { self(info).warn(level); };
    progress_.progress_monitor = [](j_common_ptr info) { self(info).check_scans(); };
    info_.client_data = this;
  }
  ~JpegReader() {
    if (created_) jpeg_destroy_decompress(&info_);
  }
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;

  // False when libjpeg failed, as for the others; message() says why.
  bool header(std::string_view content) {
    if (setjmp(back_)) return false;
    jpeg_create_decompress(&info_);
    created_ = true;
    info_.client_data = this;
    info_.progress = &progress_;
    jpeg_mem_src(&info_, reinterpret_cast<const unsigned char*>(content.data()), content.size());
    jpeg_read_header(&info_, TRUE);
    return true;
  }
  bool start() {
    if (setjmp(back_)) return false;
    info_.out_color_space = channels() == 1 ? JCS_GRAYSCALE : JCS_RGB;
    info_.dct_method = JDCT_ISLOW;
    return jpeg_start_decompress(&info_);
  }
  bool row(uint8_t* out) {
    if (setjmp(back_)) return false;
    return jpeg_read_scanlines(&info_, &out, 1) == 1;
  }
  bool finish() {
    if (setjmp(back_)) return false;
    return jpeg_finish_decompress(&info_);
  }

  int64_t width() const { return info_.image_width; }
  int64_t height() const { return info_.image_height; }
  int64_t channels() const { return info_.num_components == 1 ? 1 : 3; }
  bool four_colours() const { return info_.num_components == 4; }
  const char* message() const { return message_.data(); }

 private:
  static JpegReader& self(j_common_ptr info) {
    return *static_cast<JpegReader*>(info->client_data);
  }

  [[noreturn]] void jump() {
    if (message_[0] == '\0') {
      errors_.format_message(reinterpret_cast<j_common_ptr>(&info_), message_.data());
    }
    std::longjmp(back_, 1);
  }

  // Warnings of libjpeg that mean missing pixels are errors here; it would make up grey ones.
  void warn(int level) {
    if (level >= 0) return;
    for (const int code : {JWRN_JPEG_EOF, JWRN_HIT_MARKER, JWRN_HUFF_BAD_CODE, JWRN_MUST_RESYNC}) {
      if (errors_.msg_code == code) jump();
    }
  }

  // A small progressive file may ask for thousands of passes over a large picture.
  void check_scans() {
    constexpr int kScans = 500;
    if (info_.input_scan_number <= kScans) return;
    fmt::format_to_n(message_.data(), message_.size() - 1, "more than {} scans", kScans);
    jump();
  }

  jpeg_decompress_struct info_{};
  jpeg_error_mgr errors_{};
  jpeg_progress_mgr progress_{};
  std::jmp_buf back_{};
  std::array<char, JMSG_LENGTH_MAX> message_{};
  bool created_ = false;
};

Image decode_jpeg(std::string_view content, const std::string& name) {
  JpegReader reader;
  const auto need = [&](bool done) {
    if (!done) {
      fail(name, fmt::format("damaged or cut JPEG file ({}); get it again", reader.message()));
    }
  };
  need(reader.header(content));
  check_size(name, reader.width(), reader.height());
  if (reader.four_colours()) fail(name, "a JPEG file of four colours (CMYK); save it as RGB");
  Image image{reader.width(), reader.height(), reader.channels(), {}};
  need(reader.start());
  const auto row = static_cast<std::size_t>(image.width * image.channels);
  // Row by row, so that a header alone does not take the memory of a large picture.
  for (int64_t y = 0; y < image.height; ++y) {
    image.pixels.resize(image.pixels.size() + row);
    need(reader.row(image.pixels.data() + image.pixels.size() - row));
  }
  need(reader.finish());
  return image;
}

}  // namespace

Image decode_image(std::string_view content, const std::string& name) {
  if (content.empty()) fail(name, "the file is empty; a picture was expected");
  if (content.starts_with(kPngMagic)) return decode_png(content, name);
  if (content.starts_with(kJpegMagic)) return decode_jpeg(content, name);
  std::string first;
  for (const char c : content.substr(0, 4)) {
    first += fmt::format(" {:02x}", static_cast<uint8_t>(c));
  }
  fail(name, fmt::format("the file starts with{}, neither PNG (89 50 4e 47) nor JPEG (ff d8 ff); "
                         "is it of another format?",
                         first));
}

Image read_image(const std::filesystem::path& file) {
  return decode_image(read_file(file), file.string());
}

Image to_grey(Image image) {
  if (image.channels == 1) return image;
  const std::size_t count = image.pixels.size() / 3;
  for (std::size_t i = 0; i < count; ++i) {
    const uint8_t* p = image.pixels.data() + 3 * i;
    const uint32_t grey = (19595u * p[0] + 38470u * p[1] + 7471u * p[2] + 32768u) >> 16;
    image.pixels[i] = static_cast<uint8_t>(grey);
  }
  image.pixels.resize(count);
  image.pixels.shrink_to_fit();
  image.channels = 1;
  return image;
}

std::string encode_png(const Image& image) {
  PngImage png;
  png.width = static_cast<png_uint_32>(image.width);
  png.height = static_cast<png_uint_32>(image.height);
  png.format = image.channels == 3 ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY;
  if (image.pixels.empty() || image.pixels.size() != PNG_IMAGE_SIZE(png)) {
    throw std::invalid_argument(
        fmt::format("encode_png: {} bytes for {} × {} pixels of {} channels", image.pixels.size(),
                    image.width, image.height, image.channels));
  }
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(png);
  std::string out(size, '\0');
  if (!png_image_write_to_memory(&png, out.data(), &size, 0, image.pixels.data(), 0, nullptr)) {
    throw std::runtime_error(fmt::format("encode_png: {}", png.message));
  }
  out.resize(size);
  return out;
}

}  // namespace rotrnn
