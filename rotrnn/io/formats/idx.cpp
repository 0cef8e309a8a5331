#include "rotrnn/io/formats/idx.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <stdexcept>

#include "rotrnn/io/atomic_file.h"
#include "rotrnn/io/gzip.h"

namespace rotrnn {
namespace {

// The plain bytes in their order, wherever they come from.
class Source {
 public:
  Source(std::string_view content, const std::string& name) : content_(content), name_(name) {
    if (is_gzip(content)) gzip_.emplace(content, name);
  }

  // Fewer than `size` only at the end.
  std::size_t read(void* out, std::size_t size) {
    if (gzip_) return count(gzip_->read(static_cast<char*>(out), size));
    const std::size_t there = std::min(size, content_.size() - offset_);
    std::memcpy(out, content_.data() + offset_, there);
    return count(there);
  }

  // No more bytes than this can follow.
  std::size_t bound() const { return gzip_ ? gzip_->bound() : content_.size() - offset_; }
  std::size_t offset() const { return offset_; }

  [[noreturn]] void fail(std::size_t offset, const std::string& what) const {
    throw std::runtime_error(
        fmt::format("{}: {}offset {}: {}", name_, gzip_ ? "unpacked " : "", offset, what));
  }

 private:
  std::size_t count(std::size_t read) {
    offset_ += read;
    return read;
  }

  std::string_view content_;
  const std::string& name_;
  std::optional<GzipSource> gzip_;
  std::size_t offset_ = 0;
};

const char* type_name(uint8_t code) {
  switch (code) {
    case 0x09:
      return ", signed bytes";
    case 0x0b:
      return ", 16-bit integers";
    case 0x0c:
      return ", 32-bit integers";
    case 0x0d:
      return ", 32-bit floats";
    case 0x0e:
      return ", 64-bit floats";
    default:
      return "";
  }
}

void read_magic(Source& source, std::size_t dimensions) {
  uint8_t magic[4] = {};
  const std::size_t there = source.read(magic, sizeof magic);
  if (there < sizeof magic) {
    source.fail(there, "the file ends within the header; is the download complete?");
  }
  if (magic[0] != 0 || magic[1] != 0) {
    source.fail(0, fmt::format("the file starts with {:02x} {:02x}, an IDX file with 00 00; is it "
                               "of another format?",
                               magic[0], magic[1]));
  }
  if (magic[2] != 0x08) {
    source.fail(2, fmt::format("type code 0x{:02x}{}; only unsigned bytes, 0x08, are read",
                               magic[2], type_name(magic[2])));
  }
  if (magic[3] != dimensions) {
    source.fail(3, fmt::format("{} dimensions, expected {}; files of images have 3, of labels 1",
                               magic[3], dimensions));
  }
}

std::vector<int64_t> read_shape(Source& source, std::size_t dimensions) {
  std::vector<int64_t> shape;
  for (std::size_t i = 0; i < dimensions; ++i) {
    uint8_t b[4] = {};
    if (source.read(b, sizeof b) < sizeof b) {
      source.fail(source.offset(), "the file ends within the header; is the download complete?");
    }
    shape.push_back(int64_t{b[0]} << 24 | int64_t{b[1]} << 16 | int64_t{b[2]} << 8 | b[3]);
  }
  return shape;
}

// Checked against what can follow, so that a header alone cannot take memory.
std::size_t payload_size(const Source& source, const std::vector<int64_t>& shape) {
  std::size_t size = 1;
  bool fits = true;
  for (const int64_t n : shape) {
    fits = fits && !__builtin_mul_overflow(size, static_cast<std::size_t>(n), &size);
  }
  if (!fits || size > source.bound()) {
    source.fail(4, fmt::format("the header promises {} values, the file can hold at most {}; it is "
                               "cut off or damaged",
                               fmt::join(shape, " × "), source.bound()));
  }
  return size;
}

// In pieces: packed data may promise a thousand times what they hold.
void read_payload(Source& source, IdxArray& array) {
  constexpr std::size_t kFirst = std::size_t{1} << 24;
  const std::size_t size = payload_size(source, array.shape);
  for (std::size_t filled = 0; filled < size;) {
    array.data.resize(std::min(size, std::max(kFirst, 2 * filled)));
    const std::size_t wanted = array.data.size() - filled;
    const std::size_t there = source.read(array.data.data() + filled, wanted);
    filled += there;
    if (there < wanted) {
      source.fail(source.offset(),
                  fmt::format("the file ends after {} of the {} values that the header promises",
                              filled, fmt::join(array.shape, " × ")));
    }
  }
}

}  // namespace

IdxArray parse_idx(std::string_view content, const std::string& name, std::size_t dimensions) {
  Source source(content, name);
  read_magic(source, dimensions);
  IdxArray array;
  array.shape = read_shape(source, dimensions);
  read_payload(source, array);
  char more = 0;
  if (source.read(&more, 1) > 0) {
    source.fail(source.offset() - 1,
                fmt::format("bytes after the {} values that the header promises; "
                            "the file is damaged or of another format",
                            fmt::join(array.shape, " × ")));
  }
  return array;
}

IdxArray read_idx(const std::filesystem::path& file, std::size_t dimensions) {
  return parse_idx(read_file(file), file.string(), dimensions);
}

}  // namespace rotrnn
