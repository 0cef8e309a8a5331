#pragma once

#include <string_view>

#include "rotrnn/data/records.h"
#include "rotrnn/io/formats/csv.h"

// Tables with one row per example: a text or a whole series in one field, and its class or values.

namespace rotrnn {

/// Reads .csv, .tsv and .tab tables by task.text_column or task.series_column, with
/// task.label_column or task.target_columns, and task.group_column. A folder may hold train, test,
/// ... as files of these names.
void read_csv_records(const ReadRequest& request, RecordWriter& out);

/// How a table is written: .tsv and .tab have tabs and no quoting; in others the header shows it.
CsvOptions csv_options(std::string_view file, std::string_view content);

}  // namespace rotrnn
