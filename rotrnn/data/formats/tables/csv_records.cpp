#include "rotrnn/data/formats/tables/csv_records.h"

#include <fmt/format.h>

#include <stdexcept>

#include "rotrnn/base/text/number.h"
#include "rotrnn/data/formats/own_files.h"

namespace rotrnn {
namespace {

// Numbers of the columns that are looked at.
struct Columns {
  std::size_t input = 0;
  std::vector<std::size_t> targets;  // the label, or the values
  std::vector<std::size_t> group;    // one or none
};

void check_settings(const TaskOptions& o) {
  require_target(o, {TaskTarget::label, TaskTarget::value, TaskTarget::forecast});
  if (o.text_column.empty() == o.series_column.empty()) {
    throw std::invalid_argument(
        "task.text_column: name the column with the text, or with task.series_column that with the "
        "series; one of the two");
  }
  if (o.target == TaskTarget::label && o.label_column.empty()) {
    throw std::invalid_argument("task.label_column: name the column with the class");
  }
  if (o.target == TaskTarget::value && o.target_columns.empty()) {
    throw std::invalid_argument("task.target_columns: name the columns with the target values");
  }
}

Columns find_columns(const CsvTable& table, const TaskOptions& o, bool labelled) {
  Columns c;
  c.input = o.text_column.empty() ? table.column(o.series_column, "task.series_column")
                                  : table.column(o.text_column, "task.text_column");
  if (!labelled) return c;
  if (o.target == TaskTarget::label) {
    c.targets.push_back(table.column(o.label_column, "task.label_column"));
  }
  if (o.target == TaskTarget::value) {
    for (const std::string& name : split_names(o.target_columns)) {
      c.targets.push_back(table.column(name, "task.target_columns"));
    }
  }
  if (!o.group_column.empty()) c.group.push_back(table.column(o.group_column, "task.group_column"));
  return c;
}

// Numbers separated by blanks, ';' or '|'; by ',' within [ ], where it cannot be a decimal comma.
void read_series(std::string_view field, const CsvTable& table, std::size_t column,
                 std::vector<float>& out) {
  out.clear();
  std::string_view rest = trimmed(field);
  std::string_view marks = ";|";
  if (rest.size() > 1 && rest.front() == '[' && rest.back() == ']') {
    rest = trimmed(rest.substr(1, rest.size() - 2));
    marks = ";|,";
  }
  const std::string ends = std::string(" \t\r\n") + std::string(marks);
  for (bool more = !rest.empty(); more;) {
    const std::size_t size = std::min(rest.find_first_of(ends), rest.size());
    const std::string_view number = rest.substr(0, size);
    const auto value = to_float(number);
    if (!value) {
      table.place().fail(fmt::format("column {}: number {}: {}", excerpt(table.columns()[column]),
                                     out.size() + 1, not_a_number_message(number)));
    }
    out.push_back(*value);
    rest = trimmed(rest.substr(size));
    more = !rest.empty();
    if (more && marks.find(rest.front()) != marks.npos) rest = trimmed(rest.substr(1));
  }
}

Record read_row(const CsvTable& table, const std::vector<std::string_view>& row, const Columns& c,
                const ReadRequest& request) {
  Record r;
  for (const std::size_t i : c.group) r.group = trimmed(row[i]);
  for (const std::size_t i : c.targets) {
    if (request.options.target == TaskTarget::value) {
      r.values.push_back(table.value(row[i], i));
      continue;
    }
    r.label = trimmed(row[i]);
    if (r.label.empty()) {
      table.place().fail(fmt::format("column {}: the label is empty; fill it in or remove the row",
                                     excerpt(table.columns()[i])));
    }
  }
  return r;
}

void read_table(const ReadRequest& request, const OwnFiles::File& file, std::string_view content,
                RecordWriter& out) {
  CsvTable table(content, file.where, csv_options(file.name, content));
  const Columns columns = find_columns(table, request.options, request.labelled);
  const bool text = !request.options.text_column.empty();
  std::vector<float> series;
  for (std::vector<std::string_view> row; table.next(row);) {
    Record record = read_row(table, row, columns, request);
    record.name = fmt::format("{}:{}", file.id, table.place().line);
    record.split = file.split;
    const std::string_view input = row[columns.input];
    if (trimmed(input).empty()) {
      table.place().fail(fmt::format("column {} is empty; fill it in or remove the row",
                                     excerpt(table.columns()[columns.input])));
    }
    if (text) {
      out.add_text(std::move(record), input);
      continue;
    }
    read_series(input, table, columns.input, series);
    out.add_values(std::move(record), std::span<const float>(series));
  }
}

}  // namespace

CsvOptions csv_options(std::string_view file, std::string_view content) {
  if (file.ends_with(".gz")) file.remove_suffix(3);
  if (file.ends_with(".tsv") || file.ends_with(".tab")) return {'\t', false};
  return {guess_separator(content), true};
}

void read_csv_records(const ReadRequest& request, RecordWriter& out) {
  check_settings(request.options);
  const OwnFiles files(request, {".csv", ".tsv", ".tab"});
  out.form({request.options.text_column.empty() ? Element::f32 : Element::u8, 1, 1, 1},
           request.path.string());
  for (const OwnFiles::File& file : files.files()) {
    read_table(request, file, files.read(file), out);
  }
}

}  // namespace rotrnn
