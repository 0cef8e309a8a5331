#include "rotrnn/io/gzip.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <new>
#include <stdexcept>
#include <utility>

namespace rotrnn {
namespace {

constexpr int kGzipOnly = MAX_WBITS + 16;
constexpr std::size_t kGzipPiece = std::size_t{1} << 30;  // zlib counts in 32 bits

}  // namespace

struct GzipSource::Stream : z_stream {
  Stream() : z_stream{} {
    if (inflateInit2(this, kGzipOnly) != Z_OK) throw std::bad_alloc();
  }
  ~Stream() { inflateEnd(this); }
};

bool is_gzip(std::string_view bytes) {
  return bytes.starts_with("\x1f\x8b");
}

GzipSource::GzipSource(std::string_view packed, std::string name)
    : packed_(packed), name_(std::move(name)), stream_(std::make_unique<Stream>()) {}

GzipSource::~GzipSource() = default;

void GzipSource::fail(const std::string& what) const {
  throw std::runtime_error(fmt::format("{}: packed offset {}: {}", name_, used_, what));
}

std::size_t GzipSource::read(char* out, std::size_t size) {
  Stream& z = *stream_;
  std::size_t made = 0;
  while (made < size) {
    if (ended_) {
      if (used_ == packed_.size()) break;
      inflateReset(&z);
      ended_ = false;
    }
    const auto in = static_cast<uInt>(std::min(kGzipPiece, packed_.size() - used_));
    const auto room = static_cast<uInt>(std::min(kGzipPiece, size - made));
    z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed_.data() + used_));
    z.avail_in = in;
    z.next_out = reinterpret_cast<Bytef*>(out + made);
    z.avail_out = room;
    const int result = inflate(&z, Z_NO_FLUSH);
    used_ += in - z.avail_in;
    made += room - z.avail_out;
    if (result == Z_STREAM_END) {
      ended_ = true;
    } else if (result == Z_BUF_ERROR) {  // nothing left to read, and not at an end
      fail("the gzip data end too early; the file is cut off, get it again");
    } else if (result != Z_OK) {
      fail(fmt::format("damaged gzip data ({}); get the file again",
                       z.msg ? z.msg : "zlib gives no reason"));
    }
  }
  return made;
}

}  // namespace rotrnn
