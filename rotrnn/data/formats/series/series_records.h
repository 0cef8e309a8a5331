#pragma once

#include "rotrnn/data/records.h"

// Tables of series: one row per time step, one column per channel.

namespace rotrnn {

/// Reads .csv, .tsv and .tab tables. task.id_column says which series a row belongs to; without it
/// a file is one series. Rows of a series are taken in their order, together or not. Channels are
/// task.channel_columns, or all columns that no other setting names. A class (task.label_column)
/// and values (task.target_columns) are the same in all rows of a series; with the target
/// "token_class" every row has its own class.
void read_series_records(const ReadRequest& request, RecordWriter& out);

}  // namespace rotrnn
