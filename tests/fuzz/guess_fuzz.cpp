#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>

#include "rotrnn/data/formats/own_files.h"
#include "rotrnn/data/formats/tables/csv_records.h"
#include "rotrnn/data/guess/guess_table.h"
#include "rotrnn/io/formats/csv.h"

using namespace rotrnn;

// Any bytes give columns that the table has, or the one documented error.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view content(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::string name = data[0] & 1 ? "a.csv" : "a.tsv";
  Guess guess;
  try {
    guess = guess_table(content, name, data[0] & 2 ? 1 : 5);
  } catch (const std::runtime_error&) {
    return 0;  // The only way in which a bad file may end.
  }
  const CsvTable table(content, name, csv_options(name, content));
  const TaskOptions& task = guess.task;
  for (const std::string& column :
       {task.text_column, task.series_column, task.label_column, task.id_column}) {
    if (!column.empty() && !table.has_column(column)) std::abort();
  }
  for (const std::string& columns : {task.channel_columns, task.target_columns}) {
    for (const std::string& column : split_names(columns)) {
      if (!table.has_column(column)) std::abort();
    }
  }
  const bool classes = task.target == TaskTarget::label || task.target == TaskTarget::token_label;
  if (classes == task.label_column.empty()) std::abort();
  if ((task.target == TaskTarget::value) == task.target_columns.empty()) std::abort();
  if (task.name != "csv" && task.name != "series") std::abort();
  if (task.name == "csv" && task.text_column.empty() == task.series_column.empty()) std::abort();
  if (guess.reasons.empty()) std::abort();
  return 0;
}
