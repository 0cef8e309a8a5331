#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "rotrnn/data/task.h"

namespace rotrnn {

/// A task, or a kind of data that users bring: one line of the table. Null: it does not have this.
struct Task {
  const char* name;
  const char* summary;
  bool own;  // users' data: shape and classes are known from the data alone
  Reader read;
  /// Makes the examples when there is no path.
  void (*make)(const TaskOptions& options, int threads, RecordWriter& out);
  RecordWriter::Order order;
  /// What is learned on train.
  Preprocessing (*prepare)(const TaskOptions& options, const Records& records,
                           std::span<const int64_t> train);
  /// Facts without data, with the preprocessing left empty.
  TaskFacts (*facts)(const TaskOptions& options);
  /// Adds one input given as a line of text.
  void (*read_line)(Record record, const std::string& line, RecordWriter& out);
  bool lines_of_files;  // a file to predict holds lines, not one input
  SampleInput (*sample)(const TaskOptions& options);
};

/// The task of that name; std::invalid_argument names the nearest when there is none.
const Task& find_task(const std::string& name);

/// All of them.
std::span<const Task> all_tasks();

}  // namespace rotrnn
