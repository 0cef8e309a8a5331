#include "rotrnn/io/formats/npy.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "rotrnn/base/text/text_place.h"
#include "rotrnn/io/atomic_file.h"

namespace rotrnn {
namespace {

static_assert(std::endian::native == std::endian::little, "the values are read as little-endian");

constexpr std::string_view kMagic("\x93NUMPY", 6);
constexpr std::size_t kMostDimensions = 32;  // NumPy's own limit
constexpr const char* kSaveAgain = "save it with numpy.save as float32 (values) or int64 (labels)";

// Thrown by the parser of the header, which does not know the name of the file.
struct HeaderError {
  std::size_t offset;
  std::string what;
};

// What the dictionary says.
struct Header {
  std::string type;
  bool fortran = false;
  std::vector<int64_t> shape;
};

// The part of Python's literals that NumPy writes:
// {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
class HeaderParser {
 public:
  HeaderParser(std::string_view text, std::size_t offset) : text_(text), offset_(offset) {}

  Header parse() {
    Header header;
    bool seen[3] = {};
    const auto once = [&](int key, const std::string& name) {
      if (seen[key]) fail(fmt::format("'{}' is there twice", name));
      seen[key] = true;
    };
    expect('{');
    while (!accept('}')) {
      const std::string key = string();
      expect(':');
      if (key == "descr") {
        once(0, key);
        header.type = type();
      } else if (key == "fortran_order") {
        once(1, key);
        header.fortran = boolean();
      } else if (key == "shape") {
        once(2, key);
        header.shape = shape();
      } else {
        fail(fmt::format("{} in the header; it has 'descr', 'fortran_order' and 'shape'",
                         excerpt(key)));
      }
      if (accept(',')) continue;
      expect('}');
      break;
    }
    if (!seen[0] || !seen[1] || !seen[2]) {
      fail("the header must have 'descr', 'fortran_order' and 'shape'");
    }
    blanks();
    if (at_ != text_.size()) fail("more after the closing brace");
    return header;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { throw HeaderError{offset_ + at_, what}; }

  void blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }

  bool accept(char c) {
    blanks();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  void expect(char c) {
    if (accept(c)) return;
    fail(fmt::format("{} where '{}' belongs",
                     at_ == text_.size() ? "the header ends" : excerpt(text_.substr(at_, 8)), c));
  }

  std::string string() {
    blanks();
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    if (quote != '\'' && quote != '"') fail("a word in quotes belongs here");
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == text_.npos) fail("a quote is not closed");
    std::string out(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return out;
  }

  std::string type() {
    if (accept('[')) fail(fmt::format("an array of records with named fields; {}", kSaveAgain));
    return string();
  }

  bool boolean() {
    blanks();
    for (const bool value : {false, true}) {
      const std::string_view word = value ? "True" : "False";
      if (!text_.substr(at_).starts_with(word)) continue;
      at_ += word.size();
      return value;
    }
    fail("True or False belongs here");
  }

  std::vector<int64_t> shape() {
    std::vector<int64_t> out;
    expect('(');
    bool comma = false;
    while (!accept(')')) {
      if (!out.empty() && !comma) fail("',' or ')' belongs here");
      if (out.size() == kMostDimensions)
        fail(fmt::format("more than {} dimensions", kMostDimensions));
      out.push_back(dimension());
      comma = accept(',');
    }
    // To Python, (3) is a number.
    if (out.size() == 1 && !comma) fail("a shape of one dimension is written (n,)");
    return out;
  }

  int64_t dimension() {
    blanks();
    int64_t out = 0;
    const std::size_t begin = at_;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
      if (__builtin_mul_overflow(out, int64_t{10}, &out) ||
          __builtin_add_overflow(out, int64_t{text_[at_] - '0'}, &out)) {
        fail("a dimension beyond 64 bits");
      }
    }
    if (at_ == begin) fail("a number belongs here");
    if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // a long integer of Python 2
    return out;
  }

  std::string_view text_;
  std::size_t offset_, at_ = 0;
};

std::string describe_type(std::string_view type) {
  switch (type.size() > 1 ? type[1] : '\0') {
    case 'O':
      return "Python objects (are the rows of unequal length?)";
    case 'S':
    case 'U':
    case 'a':
      return "text";
    case 'c':
      return "complex numbers";
    case 'M':
    case 'm':
      return "dates or times";
    case 'V':
      return "raw bytes";
    default:
      return "a type that is not read here";
  }
}

template <typename T>
T load(const char* bytes, bool swapped) {
  char b[sizeof(T)];
  std::memcpy(b, bytes, sizeof(T));
  if (swapped) std::reverse(b, b + sizeof(T));
  T out;
  std::memcpy(&out, b, sizeof(T));
  return out;
}

double from_half(uint16_t half) {
  const int exponent = half >> 10 & 31, fraction = half & 1023;
  double value = 0;
  if (exponent == 31) {
    value = fraction ? std::numeric_limits<double>::quiet_NaN()
                     : std::numeric_limits<double>::infinity();
  } else if (exponent == 0) {
    value = std::ldexp(fraction, -24);
  } else {
    value = std::ldexp(1024 + fraction, exponent - 25);
  }
  return half >> 15 ? -value : value;
}

std::string header_bytes(std::string_view type, std::span<const int64_t> shape) {
  std::string text = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}", type,
                                 npy_shape(shape));
  // The values start at a multiple of 64, as NumPy has it for memory mapping.
  constexpr std::size_t kBefore = 10, kAlign = 64;
  text.resize((kBefore + text.size() + 1 + kAlign - 1) / kAlign * kAlign - kBefore - 1, ' ');
  text += '\n';
  std::string out(kMagic);
  out += {'\1', '\0', static_cast<char>(text.size()), static_cast<char>(text.size() >> 8)};
  return out + text;
}

template <typename T>
std::string array_bytes(std::string_view type, std::span<const int64_t> shape,
                        std::span<const T> values) {
  std::string out = header_bytes(type, shape);
  out.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
  return out;
}

}  // namespace

std::string npy_shape(std::span<const int64_t> shape) {
  return fmt::format("({}{})", fmt::join(shape.begin(), shape.end(), ", "),
                     shape.size() == 1 ? "," : "");
}

void NpyArray::fail(std::size_t offset, const std::string& what) const {
  throw std::runtime_error(fmt::format("{}: offset {}: {}", name_, offset, what));
}

NpyArray::NpyArray(std::string content, std::string name)
    : content_(std::move(content)), name_(std::move(name)) {
  read_header();
  check_size();
}

void NpyArray::read_header() {
  const std::string_view all = content_;
  if (all.starts_with("PK")) {
    fail(0, "a .npz, a set of arrays; save each array in a file of its own with numpy.save");
  }
  if (!all.starts_with(kMagic.substr(0, std::min(all.size(), kMagic.size())))) {
    fail(0, fmt::format("the file starts with {}, a .npy file with \\x93NUMPY; is it of another "
                        "format?",
                        excerpt(all.substr(0, 6))));
  }
  constexpr const char* kShort = "the file ends within the header; is it complete?";
  if (all.size() < 8) fail(all.size(), kShort);
  const int major = static_cast<uint8_t>(all[6]), minor = static_cast<uint8_t>(all[7]);
  if (major < 1 || major > 3 || minor != 0) {
    fail(6, fmt::format("version {}.{} of the format; 1.0, 2.0 and 3.0 are read", major, minor));
  }
  const std::size_t begin = major == 1 ? 10 : 12;
  if (all.size() < begin) fail(all.size(), kShort);
  std::size_t length = 0;
  for (std::size_t i = begin; i-- > 8;) length = length << 8 | static_cast<uint8_t>(all[i]);
  if (length > all.size() - begin) fail(all.size(), kShort);
  Header header;
  try {
    header = HeaderParser(all.substr(begin, length), begin).parse();
  } catch (const HeaderError& error) {
    fail(error.offset, error.what);
  }
  data_ = begin + length;
  shape_ = std::move(header.shape);

  const std::string_view type = header.type;
  constexpr std::string_view kRead[] = {"b1", "i1", "i2", "i4", "i8", "u1",
                                        "u2", "u4", "u8", "f2", "f4", "f8"};
  const std::string_view order = type.substr(0, 1), rest = type.empty() ? type : type.substr(1);
  const bool known = std::find(std::begin(kRead), std::end(kRead), rest) != std::end(kRead);
  if (!known || !(order == "<" || order == ">" || (order == "|" && rest[1] == '1'))) {
    fail(begin,
         fmt::format("values of type {}, {}; {}", excerpt(type), describe_type(type), kSaveAgain));
  }
  kind_ = rest[0];
  bytes_ = rest[1] - '0';
  swapped_ = order == ">";

  strides_.assign(shape_.size(), 1);
  // Products wrap where the size is found wrong below, before a stride is used.
  const auto times = [](int64_t a, int64_t b) {
    return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  };
  for (std::size_t i = 1; i < shape_.size(); ++i) {
    if (header.fortran) {
      strides_[i] = times(strides_[i - 1], shape_[i - 1]);
    } else {
      const std::size_t k = shape_.size() - 1 - i;
      strides_[k] = times(strides_[k + 1], shape_[k + 1]);
    }
  }
}

void NpyArray::check_size() {
  const auto there = static_cast<int64_t>(content_.size() - data_);
  int64_t count = 1;
  bool fits = true;
  // The other dimensions of an empty array are limited only by their product being a number.
  for (const int64_t n : shape_) {
    if (n != 0) fits = fits && !__builtin_mul_overflow(count, n, &count);
  }
  const bool empty = std::find(shape_.begin(), shape_.end(), 0) != shape_.end();
  int64_t bytes = 0;
  fits = fits && !__builtin_mul_overflow(count, int64_t{bytes_}, &bytes);
  if (!fits || (!empty && bytes > there)) {
    fail(data_, fmt::format("the header promises an array of {} with {} bytes per value, the file "
                            "holds {} bytes; it is cut off or damaged",
                            npy_shape(shape_), bytes_, there));
  }
  size_ = empty ? 0 : count;
  if (there > size_ * bytes_) {
    fail(data_ + static_cast<std::size_t>(size_ * bytes_),
         fmt::format("bytes after the array of {}; save one array per file", npy_shape(shape_)));
  }
  row_size_ = rows() > 0 ? size_ / rows() : 0;
}

// Calls visit(number of the value in the row, its bytes), the last dimension running fastest.
template <typename Visit>
void NpyArray::visit_row(int64_t row, const Visit& visit) const {
  if (row_size_ == 0) return;
  const std::size_t dimensions = shape_.size();
  std::vector<int64_t> index(dimensions, 0);
  int64_t at = dimensions == 0 ? 0 : row * strides_[0];
  const int64_t inner = dimensions > 1 ? shape_.back() : 1;
  const int64_t step = dimensions > 1 ? strides_.back() : 1;
  const char* values = content_.data() + data_;
  for (int64_t done = 0; done < row_size_; done += inner) {
    for (int64_t i = 0; i < inner; ++i) visit(done + i, values + (at + i * step) * bytes_);
    for (std::size_t d = dimensions > 1 ? dimensions - 1 : 1; d-- > 1;) {
      at += strides_[d];
      if (++index[d] < shape_[d]) break;
      at -= strides_[d] * shape_[d];
      index[d] = 0;
    }
  }
}

namespace {

// Calls `use` with the type of the values.
template <typename Use>
void with_type(char kind, int bytes, const Use& use) {
  switch (kind == 'f' ? 'f' : kind == 'i' ? 'i' : 'u') {
    case 'f':
      return bytes == 8 ? use(double{}) : use(float{});
    case 'i':
      return bytes == 8   ? use(int64_t{})
             : bytes == 4 ? use(int32_t{})
             : bytes == 2 ? use(int16_t{})
                          : use(int8_t{});
    default:
      return bytes == 8   ? use(uint64_t{})
             : bytes == 4 ? use(uint32_t{})
             : bytes == 2 ? use(uint16_t{})
                          : use(uint8_t{});
  }
}

}  // namespace

void NpyArray::copy_row(int64_t row, float* out) const {
  if (kind_ == 'f' && bytes_ == 2) {
    return visit_row(row, [&](int64_t i, const char* at) {
      out[i] = static_cast<float>(from_half(load<uint16_t>(at, swapped_)));
    });
  }
  with_type(kind_, bytes_, [&](auto type) {
    visit_row(row, [&](int64_t i, const char* at) {
      out[i] = static_cast<float>(load<decltype(type)>(at, swapped_));
    });
  });
}

std::vector<double> NpyArray::numbers() const {
  std::vector<double> out;
  out.reserve(static_cast<std::size_t>(size_));
  for (int64_t row = 0; row < rows() && size_ > 0; ++row) {
    if (kind_ == 'f' && bytes_ == 2) {
      visit_row(row, [&](int64_t, const char* at) {
        out.push_back(from_half(load<uint16_t>(at, swapped_)));
      });
      continue;
    }
    with_type(kind_, bytes_, [&](auto type) {
      visit_row(row, [&](int64_t, const char* at) {
        out.push_back(static_cast<double>(load<decltype(type)>(at, swapped_)));
      });
    });
  }
  return out;
}

std::vector<int64_t> NpyArray::integers() const {
  std::vector<int64_t> out;
  if (kind_ == 'f') {
    for (const double value : numbers()) {
      if (!(std::fabs(value) < 0x1p53) || value != std::trunc(value)) {
        throw std::runtime_error(fmt::format("{}: value {} is {}; a whole number belongs here",
                                             name_, out.size(), value));
      }
      out.push_back(static_cast<int64_t>(value));
    }
    return out;
  }
  out.reserve(static_cast<std::size_t>(size_));
  for (int64_t row = 0; row < rows() && size_ > 0; ++row) {
    with_type(kind_, bytes_, [&](auto type) {
      visit_row(row, [&](int64_t, const char* at) {
        const auto value = load<decltype(type)>(at, swapped_);
        out.push_back(static_cast<int64_t>(value));
        if (std::is_same_v<decltype(type), uint64_t> && out.back() < 0) {
          throw std::runtime_error(fmt::format("{}: value {} is {}; numbers from 2^63 are not read",
                                               name_, out.size() - 1, value));
        }
      });
    });
  }
  return out;
}

NpyArray read_npy(const std::filesystem::path& file) {
  return {read_file(file), file.string()};
}

std::string npy_bytes(std::span<const int64_t> shape, std::span<const float> values) {
  return array_bytes("<f4", shape, values);
}

std::string npy_bytes(std::span<const int64_t> shape, std::span<const int64_t> values) {
  return array_bytes("<i8", shape, values);
}

}  // namespace rotrnn
