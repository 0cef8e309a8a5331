#include "rotrnn/data/tasks/pathfinder/pathfinder_metadata.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <optional>
#include <stdexcept>

#include "rotrnn/base/text/text_place.h"

namespace rotrnn {
namespace {

constexpr std::string_view kNpyMagic = "\x93NUMPY";
constexpr int kColumns = 4;  // that are looked at

// Below the folder of the set: a list must not lead to other files.
bool is_below(std::string_view path) {
  if (path.empty() || path.front() == '/' || path.find('\0') != path.npos) return false;
  for (std::size_t at = 0; at <= path.size();) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    const std::string_view part = path.substr(at, end - at);
    if (part.empty() || part == "." || part == "..") return false;
    at = end + 1;
  }
  return true;
}

PathfinderEntry entry(const std::vector<std::string_view>& columns, const TextPlace& place) {
  if (std::ssize(columns) < kColumns) {
    place.fail(
        fmt::format("{} columns; folder, file, number and label are needed", columns.size()));
  }
  PathfinderEntry e;
  e.file = fmt::format("{}/{}", columns[0], columns[1]);
  e.line = place.line;
  if (!is_below(e.file)) {
    place.fail(
        fmt::format("the picture is {}; it must be below the folder of the set", excerpt(e.file)));
  }
  if (columns[3] != "0" && columns[3] != "1") {
    place.fail(fmt::format("the label is {}; labels are 0 and 1", excerpt(columns[3])));
  }
  e.label = columns[3] == "1";
  return e;
}

// Plain text

bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r';
}

std::vector<std::string_view> words(std::string_view line) {
  std::vector<std::string_view> out;
  for (std::size_t at = 0; at < line.size();) {
    if (is_blank(line[at])) {
      ++at;
      continue;
    }
    const std::size_t begin = at;
    while (at < line.size() && !is_blank(line[at])) ++at;
    out.push_back(line.substr(begin, at - begin));
  }
  return out;
}

std::vector<PathfinderEntry> parse_text(std::string_view content, const std::string& name) {
  std::vector<PathfinderEntry> out;
  TextPlace place{name, 0};
  while (!content.empty()) {
    ++place.line;
    const std::size_t end = std::min(content.find('\n'), content.size());
    const auto columns = words(content.substr(0, end));
    content.remove_prefix(std::min(end + 1, content.size()));
    if (!columns.empty()) out.push_back(entry(columns, place));
  }
  return out;
}

// An array of strings

// Text between two marks of the header, which NumPy always writes in this form:
// {'descr': '<U32', 'fortran_order': False, 'shape': (1000, 11), }
std::optional<std::string_view> between(std::string_view text, std::string_view before,
                                        std::string_view after) {
  const std::size_t begin = text.find(before);
  if (begin == text.npos) return std::nullopt;
  const std::size_t end = text.find(after, begin + before.size());
  if (end == text.npos) return std::nullopt;
  return text.substr(begin + before.size(), end - begin - before.size());
}

std::optional<uint64_t> whole(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

class StringArray {
 public:
  StringArray(std::string_view content, const std::string& name) : name_(name) {
    // Versions 2 and 3 have a length of four bytes.
    const std::size_t sizes = content.size() > 6 && content[6] > 1 ? 4 : 2;
    std::size_t at = 8 + sizes;
    if (content.size() < at) fail("the file ends within the header");
    uint64_t length = 0;
    for (std::size_t i = sizes; i-- > 0;) {
      length = length << 8 | static_cast<uint8_t>(content[8 + i]);
    }
    if (length > content.size() - at) fail("the file ends within the header");
    read_header(content.substr(at, length));
    values_ = content.substr(at + length);
    uint64_t bytes = 0;
    if (__builtin_mul_overflow(rows_, columns_, &bytes) ||
        __builtin_mul_overflow(bytes, cell(), &bytes) || bytes != values_.size()) {
      fail(fmt::format("the header says {} × {} strings of {} bytes, {} bytes follow", rows_,
                       columns_, cell(), values_.size()));
    }
  }

  uint64_t rows() const { return rows_; }
  uint64_t columns() const { return columns_; }

  // Without the zeros that fill it up; characters outside ASCII become '?'.
  std::string at(uint64_t row, uint64_t column) const {
    const std::string_view raw = values_.substr((row * columns_ + column) * cell(), cell());
    std::string out;
    for (std::size_t i = 0; i < raw.size(); i += unit_) {
      bool ascii = static_cast<uint8_t>(raw[i]) < 0x80;
      for (std::size_t k = 1; k < unit_; ++k) ascii = ascii && raw[i + k] == '\0';
      if (ascii && raw[i] == '\0') break;
      out += ascii ? raw[i] : '?';
    }
    return out;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw std::runtime_error(fmt::format(
        "{}: {}; it must be lines of text or a NumPy array of strings [pictures, columns]", name_,
        what));
  }

  uint64_t cell() const { return characters_ * unit_; }

  void read_header(std::string_view header) {
    const auto type = between(header, "'descr': '", "'");
    const auto shape = between(header, "'shape': (", ")");
    const auto order = between(header, "'fortran_order': ", ",");
    if (!type || !shape || !order) fail("the header is not that of an array");
    if (type->size() < 3 || !(type->starts_with("<U") || type->starts_with("|S"))) {
      fail(fmt::format("its values have the type {}", excerpt(*type)));
    }
    unit_ = (*type)[1] == 'U' ? 4 : 1;
    const auto characters = whole(type->substr(2));
    const std::size_t comma = shape->find(", ");
    const auto rows = whole(shape->substr(0, std::min(comma, shape->size())));
    const auto columns = comma == shape->npos ? std::nullopt : whole(shape->substr(comma + 2));
    if (!characters || *characters == 0 || *characters > 4096 || !rows || !columns ||
        *order != "False") {
      fail(fmt::format("its shape is ({}) of {}", *shape, *type));
    }
    characters_ = *characters;
    rows_ = *rows;
    columns_ = *columns;
  }

  const std::string& name_;
  std::string_view values_;
  uint64_t rows_ = 0, columns_ = 0, characters_ = 0;
  std::size_t unit_ = 4;  // bytes of a character
};

std::vector<PathfinderEntry> parse_array(std::string_view content, const std::string& name) {
  const StringArray array(content, name);
  std::vector<PathfinderEntry> out;
  const uint64_t columns = std::min<uint64_t>(array.columns(), kColumns);
  for (uint64_t row = 0; columns > 0 && row < array.rows(); ++row) {
    std::vector<std::string> cells;
    for (uint64_t c = 0; c < columns; ++c) cells.push_back(array.at(row, c));
    out.push_back(entry({cells.begin(), cells.end()}, {name, static_cast<int64_t>(row) + 1}));
  }
  return out;
}

// As Python writes numbers: 1.0, 0.5, 14.
std::string real(double value) {
  return value == std::floor(value) ? fmt::format("{:.1f}", value) : fmt::format("{}", value);
}

}  // namespace

std::vector<PathfinderEntry> parse_pathfinder_metadata(std::string_view content,
                                                       const std::string& name) {
  return content.starts_with(kNpyMagic) ? parse_array(content, name) : parse_text(content, name);
}

std::string pathfinder_metadata_line(const PathfinderOptions& options, const PathfinderScene& scene,
                                     const std::string& folder, const std::string& file,
                                     int64_t number) {
  return fmt::format("{} {} {} {} {} {} {} {} {} {} 1", folder, file, number, scene.label,
                     real(options.continuity), options.contour_length, options.distractor_length,
                     options.paddle_length, real(options.paddle_thickness), scene.margin);
}

}  // namespace rotrnn
