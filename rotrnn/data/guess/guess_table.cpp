#include "rotrnn/data/guess/guess_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <stdexcept>

#include "rotrnn/base/text/ascii.h"
#include "rotrnn/base/text/number.h"
#include "rotrnn/data/formats/own_files.h"
#include "rotrnn/data/formats/tables/csv_records.h"
#include "rotrnn/io/formats/csv.h"

namespace rotrnn {
namespace {

constexpr int64_t kMostRows = 5000;        // enough to know a table by
constexpr std::size_t kMostClasses = 200;  // more different values are no classes

// What is seen of a column.
struct Column {
  std::string name;
  std::vector<std::string> words;      // of its name
  std::set<std::string> values;        // different ones, as long as they may be classes
  int64_t numbers = 0, fractions = 0;  // fields that are numbers, and those not whole
  int64_t series = 0;                  // fields that hold several numbers
  int64_t spaced = 0;                  // fields with a blank inside, and letters
  int64_t characters = 0;
  int64_t changes = 0;  // rows that differ from the one before
  std::string last;

  bool named(std::initializer_list<std::string_view> names) const {
    return std::any_of(words.begin(), words.end(), [&](const std::string& word) {
      return std::find(names.begin(), names.end(), word) != names.end();
    });
  }
  bool like_label() const {
    return named({"label", "labels", "class", "classes", "target", "category", "kind", "y",
                  "sentiment", "species", "activity", "outcome", "diagnosis", "mood", "genre"});
  }
  bool like_id() const {
    return named({"id", "ids", "series", "sample", "subject", "unit", "case", "sequence", "segment",
                  "trial", "recording", "run", "file", "patient", "session"});
  }
  bool like_time() const {
    return named({"time", "timestamp", "date", "datetime", "t", "step", "index", "row"});
  }
};

// How many numbers a field holds, as the reader of series takes it; 0: something else is in it.
int64_t numbers_in(std::string_view field) {
  std::string_view rest = trimmed(field);
  std::string ends = " \t\r\n;|";
  if (rest.size() > 1 && rest.front() == '[' && rest.back() == ']') {
    rest = trimmed(rest.substr(1, rest.size() - 2));
    ends += ',';
  }
  int64_t count = 0;
  while (!rest.empty()) {
    const std::size_t size = std::min(rest.find_first_of(ends), rest.size());
    if (size > 0 && !to_float(rest.substr(0, size))) return 0;
    count += size > 0;
    rest.remove_prefix(std::min(size + 1, rest.size()));
  }
  return count;
}

// More than the name of a time zone.
bool has_letters(std::string_view field) {
  return std::count_if(field.begin(), field.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c & 0x80) != 0;
         }) > 3;
}

struct Table {
  std::string name;
  int64_t rows = 0;
  std::vector<Column> columns;  // those with a name: a setting can mean no others
  std::size_t nameless = 0;     // the others, such as the index that pandas writes
  std::vector<std::vector<std::string>>
      kept;  // fields of the rows, for what depends on two columns

  bool most(int64_t count) const { return 10 * count >= 9 * rows; }
  std::string names() const {
    std::vector<std::string> out;
    for (const Column& c : columns) out.push_back(c.name);
    return fmt::format("{}", fmt::join(out, ", "));
  }
  [[noreturn]] void fail(const std::string& what) const {
    const std::string passed_over =
        nameless == 0 ? ""
                      : fmt::format(
                            ". {} column(s) without a name in the first line were left "
                            "out; give them a name to use them",
                            nameless);
    throw std::runtime_error(name + ": " + what + passed_over);
  }
  // For settings that hold several names with commas between them.
  void require_no_comma(const std::string& column, const char* key) const {
    if (column.find(',') == std::string::npos) return;
    fail(fmt::format(
        "the column \"{}\" has a comma in its name, which separates names in task.{}; rename it",
        column, key));
  }
  // The column that a setting names; null: it names none.
  const Column* find(const std::string& column, const char* key) const {
    if (column.empty()) return nullptr;
    for (const Column& c : columns) {
      if (c.name == column) return &c;
    }
    fail(fmt::format("task.{}: there is no column \"{}\"; the columns are {}", key, column,
                     names()));
  }
};

// The columns of a table that the user's settings name.
struct Named {
  const Column *text, *series, *label, *id;
  std::vector<const Column*> targets;

  Named(const Table& t, const TaskOptions& given)
      : text(t.find(given.text_column, "text_column")),
        series(t.find(given.series_column, "series_column")),
        label(t.find(given.label_column, "label_column")),
        id(t.find(given.id_column, "id_column")) {
    for (const std::string& name : split_names(given.target_columns)) {
      targets.push_back(t.find(name, "target_columns"));
    }
  }
  bool is_target(const Column& c) const {
    return &c == label || std::find(targets.begin(), targets.end(), &c) != targets.end();
  }
};

Table look_at(std::string_view content, const std::string& name) {
  CsvTable csv(content, name, csv_options(name, content));
  Table table;
  table.name = name;
  std::vector<std::size_t> places;  // of the columns in a row
  for (std::size_t i = 0; i < csv.columns().size(); ++i) {
    const std::string& column = csv.columns()[i];
    if (column.empty()) continue;
    places.push_back(i);
    table.columns.emplace_back().name = column;
    table.columns.back().words = words_of(column);
  }
  if (places.empty()) table.fail("the first line names no column; it must name them");
  table.nameless = csv.columns().size() - places.size();
  std::vector<std::string_view> row;
  while (table.rows < kMostRows && csv.next(row)) {
    std::vector<std::string>& kept = table.kept.emplace_back();
    for (std::size_t i = 0; i < places.size(); ++i) {
      Column& c = table.columns[i];
      kept.emplace_back(row[places[i]]);
      const std::string_view field = trimmed(row[places[i]]);
      const auto number = to_number(field);
      c.numbers += number.has_value();
      c.fractions += number && *number != std::floor(*number);
      c.series += numbers_in(field) >= 3;
      c.spaced += field.find(' ') != field.npos && has_letters(field);
      c.characters += std::ssize(field);
      if (c.values.size() <= kMostClasses) c.values.emplace(field.substr(0, 100));
      c.changes += table.rows > 0 && c.last != field;
      c.last = field;
    }
    ++table.rows;
  }
  if (table.rows == 0) table.fail("there is a header and nothing below it");
  return table;
}

// Numbers that are measured rather than names of classes.
bool is_measured(const Table& t, const Column& c) {
  return c.numbers == t.rows && (c.fractions > 0 || c.values.size() > 50);
}

bool may_be_label(const Table& t, const Column& c) {
  const auto most = std::max<std::size_t>(20, static_cast<std::size_t>(t.rows) / 5);
  return c.values.size() >= 2 && c.values.size() <= std::min(kMostClasses, most) &&
         !c.values.contains("") && !is_measured(t, c);
}

// The column that a row's target is in: by its name, else the last that could be a class, else the
// last that was measured; null: none.
const Column* find_target(const Table& t, const Column* input) {
  const Column *label = nullptr, *value = nullptr;
  for (const Column& c : t.columns) {
    if (&c == input) continue;
    if (c.like_label() && (may_be_label(t, c) || is_measured(t, c))) return &c;
    if (c.like_id() || c.like_time()) continue;
    if (may_be_label(t, c)) label = &c;
    if (c.numbers == t.rows && c.fractions > 0) value = &c;
  }
  return label != nullptr ? label : value;
}

void say(Guess& guess, std::string TaskOptions::*place, const char* key, const Column& column,
         const std::string& why) {
  guess.task.*place = column.name;
  guess.reasons.push_back({fmt::format("task.{}", key), why});
}

std::string values_text(const Column& c) {
  std::vector<std::string> some;
  for (const std::string& value : c.values) {
    if (some.size() == 4) break;
    some.push_back(value);
  }
  return fmt::format("{} values: {}{}", c.values.size(), fmt::join(some, ", "),
                     c.values.size() > some.size() ? ", …" : "");
}

void say_values(Guess& guess, const std::string& columns) {
  guess.task.target = TaskTarget::value;
  guess.task.target_columns = columns;
  guess.reasons.push_back({"task.target", "numbers are predicted, not classes"});
  guess.reasons.push_back({"task.target_columns", "the values to predict"});
}

// The label or value of a table with one row per example.
void guess_target(const Table& t, const Column* input, const TaskOptions& given, const Named& named,
                  Guess& guess) {
  if (given.target == TaskTarget::forecast) return;
  if (!named.targets.empty()) return say_values(guess, given.target_columns);
  const Column* target = named.label != nullptr ? named.label : find_target(t, input);
  if (target == nullptr) {
    t.fail(
        fmt::format("no column looks like a label; the columns are {}. Name it: --set "
                    "task.label_column=NAME, or for target values --set "
                    "task.target_columns=NAME",
                    t.names()));
  }
  if (target != named.label && is_measured(t, *target)) {
    t.require_no_comma(target->name, "target_columns");
    say_values(guess, target->name);
  } else {
    say(guess, &TaskOptions::label_column, "label_column", *target, values_text(*target));
  }
}

// Columns of people, machines and the like, which should not be in two splits.
void advise_groups(const Table& t, Guess& guess) {
  for (const Column& c : t.columns) {
    const bool person =
        c.named({"group", "subject", "speaker", "patient", "user", "author", "who"});
    if (person && c.name != guess.task.label_column && c.name != guess.task.id_column &&
        c.values.size() >= 3) {
      guess.advice.push_back(
          fmt::format("group_column = \"{}\" with split = \"group\" keeps everything of one {} in "
                      "one split",
                      c.name, c.name));
    }
  }
}

Guess guess_rows(const Table& t, const Column& input, bool text, const TaskOptions& given,
                 const Named& named) {
  Guess guess;
  guess.task.name = "csv";
  guess.reasons.push_back({"task.name", "a table with one row per example"});
  const double mean = static_cast<double>(input.characters) / static_cast<double>(t.rows);
  say(guess, text ? &TaskOptions::text_column : &TaskOptions::series_column,
      text ? "text_column" : "series_column", input,
      text ? fmt::format("texts of {:.0f} characters on average", mean)
           : "a whole series in every field");
  guess_target(t, &input, given, named, guess);
  advise_groups(t, guess);
  return guess;
}

// Whether the label stays the same within every series.
bool constant_in(const Table& t, std::size_t label, std::size_t id) {
  std::map<std::string, std::string> seen;
  return std::all_of(t.kept.begin(), t.kept.end(), [&](const std::vector<std::string>& row) {
    return seen.try_emplace(row[id], row[label]).first->second == row[label];
  });
}

const Column* find_id(const Table& t, const Column* label) {
  for (const Column& c : t.columns) {
    // A name that repeats in many rows: one that differs in each is the number of the row.
    const bool repeats = c.changes * 2 < t.rows && c.values.size() > 1;
    if (&c != label && c.like_id() && repeats) return &c;
  }
  return nullptr;
}

const Column* find_step_label(const Table& t, std::size_t files) {
  const Column* label = nullptr;
  for (const Column& c : t.columns) {
    const bool words = c.numbers == 0 && may_be_label(t, c);
    const bool one = files > 1 && c.values.size() == 1;  // the same in all of a file
    if (c.like_label() && (may_be_label(t, c) || one)) return &c;
    if (label == nullptr && words && !c.like_id() && !c.like_time()) label = &c;
  }
  return label;
}

// What the columns of a table with one time step per row are.
struct StepColumns {
  const Column* label;  // null: none
  const Column* id;     // null: none
  std::vector<std::string> channels, left_out;
};

StepColumns find_step_columns(const Table& t, std::size_t files, bool labelled,
                              const Named& named) {
  StepColumns out{named.label, nullptr, {}, {}};
  if (out.label == nullptr && labelled) out.label = find_step_label(t, files);
  out.id = named.id != nullptr ? named.id : find_id(t, out.label);
  for (const Column& c : t.columns) {
    if (&c == out.label || &c == out.id || named.is_target(c)) continue;
    (t.most(c.numbers) && !c.like_time() ? out.channels : out.left_out).push_back(c.name);
  }
  if (t.nameless > 0) out.left_out.push_back("columns without a name");
  return out;
}

void check_step_columns(const Table& t, std::size_t files, const StepColumns& columns) {
  if (columns.channels.empty()) {
    t.fail(
        fmt::format("no column holds texts, series or numbers to learn from; the columns are {}. "
                    "Name them: --task csv --set task.text_column=NAME, or --set "
                    "task.series_column=NAME, and --set task.label_column=NAME",
                    t.names()));
  }
  if (columns.label == nullptr || columns.id != nullptr || files > 1) return;
  const bool wide = columns.channels.size() >= 8;
  t.fail(fmt::format(
      "every row has a label ({}) and there is no column that says which rows are one series; {}",
      columns.label->name,
      wide ? fmt::format(
                 "if a row is a series with one column per step, write its {} numbers into one "
                 "field, with blanks between them, or save all as an array [count, time] "
                 "with NumPy and the labels as a second one",
                 columns.channels.size())
           : "add one, and name it: --set task.id_column=NAME"));
}

void guess_step_target(const Table& t, const StepColumns& columns, Guess& guess) {
  if (columns.label == nullptr) {
    guess.task.target = TaskTarget::forecast;
    guess.reasons.push_back(
        {"task.target", "no column looks like a label: the next values are predicted"});
    return;
  }
  const Column& label = *columns.label;
  say(guess, &TaskOptions::label_column, "label_column", label, values_text(label));
  const auto at = [&](const Column* c) { return static_cast<std::size_t>(c - t.columns.data()); };
  const bool constant =
      columns.id != nullptr ? constant_in(t, at(&label), at(columns.id)) : label.changes == 0;
  if (!constant) {
    guess.task.target = TaskTarget::token_label;
    guess.reasons.push_back(
        {"task.target", "the label changes within a series: one for every step"});
  }
  advise_groups(t, guess);
}

// One time step per row.
Guess guess_steps(const Table& t, std::size_t files, const TaskOptions& given, const Named& named) {
  Guess guess;
  guess.task.name = "series";
  guess.reasons.push_back(
      {"task.name", "tables with one row per time step, one column per channel"});
  const bool values = !named.targets.empty(), forecast = given.target == TaskTarget::forecast;
  const StepColumns columns = find_step_columns(t, files, !values && !forecast, named);
  check_step_columns(t, files, columns);
  if (columns.id != nullptr) {
    say(guess, &TaskOptions::id_column, "id_column", *columns.id,
        "rows with the same name are one series");
  }
  if (!columns.left_out.empty()) {
    for (const auto& channel : columns.channels) t.require_no_comma(channel, "channel_columns");
    guess.task.channel_columns = fmt::format("{}", fmt::join(columns.channels, ", "));
    guess.reasons.push_back(
        {"task.channel_columns", fmt::format("without {}", fmt::join(columns.left_out, ", "))});
  }
  if (values) {
    say_values(guess, given.target_columns);
    advise_groups(t, guess);
  } else {
    guess_step_target(t, columns, guess);
  }
  return guess;
}

}  // namespace

Guess guess_table(std::string_view content, const std::string& name, std::size_t files,
                  const TaskOptions& given) {
  const Table table = look_at(content, name);
  const Named named(table, given);
  if (named.text != nullptr) return guess_rows(table, *named.text, true, given, named);
  if (named.series != nullptr) return guess_rows(table, *named.series, false, given, named);
  const Column *series = nullptr, *text = nullptr;
  const bool measured = std::any_of(table.columns.begin(), table.columns.end(),
                                    [&](const Column& c) { return is_measured(table, c); });
  for (const Column& c : table.columns) {
    if (named.is_target(c)) continue;
    if (table.most(c.series) && (!series || c.characters > series->characters)) series = &c;
    const bool words = table.most(table.rows - c.numbers) && 2 * c.spaced > table.rows;
    const bool many = c.values.size() > kMostClasses ||
                      2 * std::ssize(c.values) > std::min<int64_t>(table.rows, kMostClasses);
    if (words && (many || !measured) && (!text || c.characters > text->characters)) text = &c;
  }
  if (series != nullptr) return guess_rows(table, *series, false, given, named);
  if (text != nullptr) return guess_rows(table, *text, true, given, named);
  return guess_steps(table, files, given, named);
}

}  // namespace rotrnn
