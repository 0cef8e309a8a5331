#include "rotrnn/data/formats/series/series_records.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <unordered_map>

#include "rotrnn/base/text/number.h"
#include "rotrnn/data/formats/own_files.h"
#include "rotrnn/data/formats/tables/csv_records.h"

namespace rotrnn {
namespace {

// Numbers of the columns that are looked at; of label, id and group one or none.
struct Columns {
  std::vector<std::size_t> channels, label, targets, id, group;
};

// A series as far as it was read.
struct Series {
  Record record;
  std::vector<float> values;
  int64_t line = 0;  // of its first row
};

void check_settings(const TaskOptions& o) {
  const bool classes = o.target == TaskTarget::label || o.target == TaskTarget::token_label;
  if (classes && o.label_column.empty()) {
    throw std::invalid_argument("task.label_column: name the column with the class");
  }
  if (o.target == TaskTarget::value && o.target_columns.empty()) {
    throw std::invalid_argument("task.target_columns: name the columns with the target values");
  }
  if (o.target == TaskTarget::forecast && !o.target_columns.empty()) {
    throw std::invalid_argument(
        "task.target_columns: a forecast predicts the next values of all channels; name these in "
        "task.channel_columns");
  }
}

Columns find_columns(const CsvTable& table, const ReadRequest& request) {
  const TaskOptions& o = request.options;
  Columns c;
  const auto find = [&](const std::string& name, const char* setting, bool needed,
                        std::vector<std::size_t>& place) {
    if (!name.empty() && (needed || table.has_column(name))) {
      place.push_back(table.column(name, setting));
    }
  };
  const bool classes = o.target == TaskTarget::label || o.target == TaskTarget::token_label;
  const bool values = o.target == TaskTarget::value;
  find(o.id_column, "task.id_column", true, c.id);
  find(o.label_column, "task.label_column", request.labelled && classes, c.label);
  find(o.group_column, "task.group_column", request.labelled, c.group);
  for (const std::string& name : split_names(o.target_columns)) {
    find(name, "task.target_columns", request.labelled && values, c.targets);
  }
  for (const std::string& name : split_names(o.channel_columns)) {
    find(name, "task.channel_columns", true, c.channels);
  }
  if (o.channel_columns.empty()) {
    const auto named = [&](std::size_t i) {
      for (const auto* columns : {&c.label, &c.targets, &c.id, &c.group}) {
        if (std::find(columns->begin(), columns->end(), i) != columns->end()) return true;
      }
      return false;
    };
    for (std::size_t i = 0; i < table.columns().size(); ++i) {
      if (!named(i)) c.channels.push_back(i);
    }
  }
  if (c.channels.empty()) table.place().fail("there is no column left for a channel");
  return c;
}

class TableReader {
 public:
  TableReader(const ReadRequest& request, const OwnFiles::File& file, CsvTable& table,
              RecordWriter& out)
      : request_(request),
        target_(request.options.target),
        file_(file),
        table_(table),
        columns_(find_columns(table, request)),
        out_(out) {}

  std::vector<std::string> channel_names() const {
    std::vector<std::string> out;
    for (const std::size_t i : columns_.channels) out.push_back(table_.columns()[i]);
    return out;
  }

  void read() {
    while (table_.next(row_)) {
      Series& series = series_of_row();
      for (const std::size_t i : columns_.channels) series.values.push_back(number(i));
      if (request_.labelled) read_targets(series);
    }
    for (Series& series : all_) {
      out_.add_values(std::move(series.record), std::span<const float>(series.values));
    }
  }

 private:
  Series& series_of_row() {
    std::string id;
    for (const std::size_t i : columns_.id) {
      id = word(i, "the name of the series");
    }
    const auto [found, fresh] = numbers_.try_emplace(id, all_.size());
    if (fresh) {
      Series& series = all_.emplace_back();
      series.line = table_.place().line;
      series.record.name = columns_.id.empty() ? file_.id : fmt::format("{}:{}", file_.id, id);
      series.record.split = file_.split;
    }
    return all_[found->second];
  }

  void read_targets(Series& series) {
    const bool first = series.line == table_.place().line;
    Record& record = series.record;
    for (const std::size_t i : columns_.group) {
      keep_same(series, first, record.group, std::string(trimmed(row_[i])), i);
    }
    if (target_ == TaskTarget::token_label) {
      record.token_classes.push_back(
          out_.class_number(word(columns_.label[0], "the class of a step")));
    }
    if (target_ == TaskTarget::label) {
      keep_same(series, first, record.label, word(columns_.label[0], "the label"),
                columns_.label[0]);
    }
    if (target_ != TaskTarget::value) return;
    record.values.resize(columns_.targets.size());
    for (std::size_t k = 0; k < columns_.targets.size(); ++k) {
      keep_same(series, first, record.values[k], number(columns_.targets[k]), columns_.targets[k]);
    }
  }

  template <typename T>
  void keep_same(const Series& series, bool first, T& kept, const T& seen, std::size_t column) {
    if (first) kept = seen;
    if (kept == seen) return;
    fail(column, fmt::format("{} in {}, which has {} on line {}; it must be the same in all rows "
                             "of a series{}",
                             excerpt(fmt::format("{}", seen)), excerpt(series.record.name),
                             excerpt(fmt::format("{}", kept)), series.line,
                             columns_.id.empty() ? ", which task.id_column distinguishes" : ""));
  }

  std::string word(std::size_t column, const char* what) const {
    const std::string_view text = trimmed(row_[column]);
    if (text.empty()) fail(column, fmt::format("{} is empty; fill it in or remove the row", what));
    return std::string(text);
  }

  float number(std::size_t column) const {
    const auto value = to_float(row_[column]);
    if (!value) {
      const bool chosen = !request_.options.channel_columns.empty();
      fail(column, not_a_number_message(row_[column]) +
                       (chosen ? "" : "; task.channel_columns can name the channels"));
    }
    return *value;
  }

  [[noreturn]] void fail(std::size_t column, const std::string& what) const {
    table_.place().fail(fmt::format("column {}: {}", excerpt(table_.columns()[column]), what));
  }

  const ReadRequest& request_;
  TaskTarget target_;
  const OwnFiles::File& file_;
  CsvTable& table_;
  Columns columns_;
  RecordWriter& out_;
  std::vector<std::string_view> row_;
  std::vector<Series> all_;
  std::unordered_map<std::string, std::size_t> numbers_;  // in all_, by the name of the series
};

}  // namespace

void read_series_records(const ReadRequest& request, RecordWriter& out) {
  check_settings(request.options);
  const OwnFiles files(request, {".csv", ".tsv", ".tab"});
  std::vector<std::string> channels;  // of the first file
  for (const OwnFiles::File& file : files.files()) {
    const std::string content = files.read(file);
    CsvTable table(content, file.where, csv_options(file.name, content));
    TableReader reader(request, file, table, out);
    const auto names = reader.channel_names();
    if (channels.empty()) channels = names;
    if (names != channels) {
      table.place().fail(
          fmt::format("the channels are {}, in {} they are {}; name them in "
                      "task.channel_columns",
                      fmt::join(names, ", "), files.files()[0].where, fmt::join(channels, ", ")));
    }
    out.form({Element::f32, std::ssize(names), 1, 1, 0, names}, file.where);
    reader.read();
  }
}

}  // namespace rotrnn
