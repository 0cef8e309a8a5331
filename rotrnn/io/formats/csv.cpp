#include "rotrnn/io/formats/csv.h"

#include <fmt/format.h>

#include <algorithm>

#include "rotrnn/base/text/nearest.h"
#include "rotrnn/base/text/number.h"
#include "rotrnn/base/text/utf8.h"

namespace rotrnn {
namespace {

int64_t newlines(std::string_view text) {
  return std::count(text.begin(), text.end(), '\n');
}

// A field in quotes may hold any text, so a wrong byte can only be looked for in the whole.
void require_text(std::string_view content, std::string_view name) {
  const auto place = [&](std::size_t at) {
    return TextPlace{name, 1 + newlines(content.substr(0, at))};
  };
  const std::size_t zero = content.find('\0'), bad = find_not_utf8(content);
  if (bad < zero) place(bad).fail(not_utf8_message(content, bad));
  if (zero != content.npos) {
    place(zero).fail("a zero byte; the file is damaged, or is not text in UTF-8");
  }
}

}  // namespace

CsvReader::CsvReader(std::string_view content, std::string_view name, CsvOptions options)
    : content_(without_bom(content)), name_(name), options_(options) {
  require_text(content_, name);
}

bool CsvReader::at_line_end() const {
  if (at_ >= content_.size() || content_[at_] == '\n') return true;
  return content_[at_] == '\r' && (at_ + 1 == content_.size() || content_[at_ + 1] == '\n');
}

std::string_view CsvReader::plain_field() {
  const std::size_t begin = at_;
  while (at_ < content_.size() && content_[at_] != options_.separator && content_[at_] != '\n') {
    ++at_;
  }
  if (at_ > begin && at_line_end() && content_[at_ - 1] == '\r') --at_;
  return content_.substr(begin, at_ - begin);
}

std::string_view CsvReader::quoted_field() {
  const std::size_t begin = ++at_;
  bool doubled = false;
  for (;; at_ += 2, doubled = true) {
    const std::size_t quote = content_.find('"', at_);
    if (quote == content_.npos) {
      place().fail(
          "a quote is opened in this record and never closed; a quote within a quoted "
          "field is written twice");
    }
    at_ = quote;
    if (at_ + 1 >= content_.size() || content_[at_ + 1] != '"') break;
  }
  std::string_view field = content_.substr(begin, at_ - begin);
  next_line_ += newlines(field);
  ++at_;
  if (!at_line_end() && content_[at_] != options_.separator) {
    TextPlace{name_, next_line_}.fail(
        fmt::format("{} follows a closing quote; a quote within a quoted field is written twice",
                    excerpt(content_.substr(at_, 12))));
  }
  if (!doubled) return field;
  std::string& out = unquoted_.emplace_back();
  for (std::size_t i = 0; i < field.size(); ++i) {
    out += field[i];
    if (field[i] == '"') ++i;
  }
  return out;
}

bool CsvReader::next(std::vector<std::string_view>& fields) {
  fields.clear();
  unquoted_.clear();
  const auto end_line = [&] {
    if (at_ < content_.size() && content_[at_] == '\r') ++at_;
    if (at_ < content_.size()) ++at_;
    ++next_line_;
  };
  while (at_ < content_.size() && at_line_end()) end_line();
  if (at_ >= content_.size()) return false;
  line_ = next_line_;
  for (;; ++at_) {
    const bool quoted = options_.quotes && at_ < content_.size() && content_[at_] == '"';
    fields.push_back(quoted ? quoted_field() : plain_field());
    if (at_line_end()) break;
  }
  end_line();
  return true;
}

CsvTable::CsvTable(std::string_view content, std::string_view name, CsvOptions options)
    : name_(name), reader_(content, name, options) {
  std::vector<std::string_view> fields;
  if (!reader_.next(fields)) {
    place().fail("the file is empty; its first line must name the columns");
  }
  header_line_ = place().line;
  for (const std::string_view field : fields) columns_.emplace_back(trimmed(field));
}

bool CsvTable::has_column(std::string_view name) const {
  return std::find(columns_.begin(), columns_.end(), name) != columns_.end();
}

std::size_t CsvTable::column(std::string_view name, std::string_view setting) const {
  const TextPlace header{name_, header_line_};
  const auto count = std::count(columns_.begin(), columns_.end(), name);
  if (count > 1) {
    header.fail(fmt::format("{} columns are called {} ({}); give them different names", count,
                            excerpt(name), setting));
  }
  if (count == 0) {
    const std::string near = nearest(name, columns_);
    std::string all;
    for (const std::string& column : columns_) {
      if (all.size() > 400) {
        all += ", ...";
        break;
      }
      all += (all.empty() ? "" : ", ") + excerpt(column);
    }
    header.fail(fmt::format("there is no column {} ({}); {} {}", excerpt(name), setting,
                            near.empty()
                                ? "the columns are"
                                : fmt::format("did you mean {}? The columns are", excerpt(near)),
                            all));
  }
  return static_cast<std::size_t>(std::find(columns_.begin(), columns_.end(), name) -
                                  columns_.begin());
}

bool CsvTable::next(std::vector<std::string_view>& fields) {
  if (!reader_.next(fields)) return false;
  if (fields.size() != columns_.size()) {
    place().fail(fmt::format("{} columns, the header has {}", fields.size(), columns_.size()));
  }
  return true;
}

double CsvTable::number(std::string_view field, std::size_t column) const {
  const auto value = to_number(field);
  if (!value) {
    place().fail(
        fmt::format("column {}: {}", excerpt(columns_[column]), not_a_number_message(field)));
  }
  return *value;
}

float CsvTable::value(std::string_view field, std::size_t column) const {
  const auto value = to_float(field);
  if (!value) {
    place().fail(
        fmt::format("column {}: {}", excerpt(columns_[column]), not_a_number_message(field)));
  }
  return *value;
}

char guess_separator(std::string_view content) {
  const std::string_view line = content.substr(0, content.find('\n'));
  char best = ',';
  std::ptrdiff_t most = std::count(line.begin(), line.end(), ',');
  for (const char candidate : {';', '\t'}) {
    const auto count = std::count(line.begin(), line.end(), candidate);
    if (count > most) {
      most = count;
      best = candidate;
    }
  }
  return best;
}

}  // namespace rotrnn
