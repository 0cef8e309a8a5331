#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "rotrnn/base/text/text_place.h"

// Tables as text: CSV as RFC 4180 has it, with ',' or another separator, and TSV as public data
// sets have it, without quoting. UTF-8, with or without a byte order mark; lines end in LF or CR
// LF.

namespace rotrnn {

/// How a table is written.
struct CsvOptions {
  char separator = ',';
  bool quotes = true;  // false: a quote is a character like any other
};

/// The records of a table, one after the other. Empty lines are no records. In a field that does
/// not start with one, a quote is a plain character. What cannot be read throws std::runtime_error
/// `name:line: ...`.
class CsvReader {
 public:
  /// `content` and `name` must outlive the object. Throws if there are bytes that are not UTF-8, or
  /// zeros.
  CsvReader(std::string_view content, std::string_view name, CsvOptions options = {});

  /// Reads the next record; false at the end. The fields are valid until the next call.
  bool next(std::vector<std::string_view>& fields);

  /// Where the record read last starts.
  TextPlace place() const { return {name_, line_}; }

 private:
  std::string_view plain_field();
  std::string_view quoted_field();
  bool at_line_end() const;

  std::string_view content_;
  std::string_view name_;
  CsvOptions options_;
  std::size_t at_ = 0;
  int64_t line_ = 1, next_line_ = 1;
  std::deque<std::string> unquoted_;  // fields of this record that had doubled quotes
};

/// A table whose first record names the columns.
class CsvTable {
 public:
  /// As CsvReader; reads the header. An empty file is an error.
  CsvTable(std::string_view content, std::string_view name, CsvOptions options = {});

  const std::vector<std::string>& columns() const { return columns_; }

  /// The number of the column of this name; std::runtime_error that names the nearest one, and all,
  /// when there is none, or when there are two. `setting` says who asks, such as "task.label".
  std::size_t column(std::string_view name, std::string_view setting) const;

  bool has_column(std::string_view name) const;

  /// Reads the next row; one with another number of fields than the header is an error.
  bool next(std::vector<std::string_view>& fields);

  /// Where the row read last starts.
  TextPlace place() const { return reader_.place(); }

  /// The number in a field of the row read last, for the column of this number; anything that is
  /// not a finite number is an error that names line and column.
  double number(std::string_view field, std::size_t column) const;

  /// The same in single precision.
  float value(std::string_view field, std::size_t column) const;

 private:
  std::string_view name_;
  CsvReader reader_;
  std::vector<std::string> columns_;
  int64_t header_line_ = 1;
};

/// The separator that the first line has most of, out of tab, ';' and ','; ',' when it has none.
char guess_separator(std::string_view content);

}  // namespace rotrnn
