#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "rotrnn/data/examples.h"
#include "rotrnn/data/task_options.h"
#include "rotrnn/spec/data_shape.h"

namespace rotrnn {

/// What a network has to know about a task; saved with a model.
struct TaskFacts {
  DataShape shape;
  int64_t typical_length = 0;  // of one example
  std::vector<std::string> classes;
  Preprocessing preprocessing;
};

/// A task with its data.
struct TaskData {
  TaskFacts facts;
  Examples train, validation, test;
  std::vector<std::string> messages;  // what a user should know about the data
};

/// A line of `rotrnn data list`.
struct TaskSummary {
  std::string name, summary;
  bool own = false;  // a kind of data that users bring
};
std::vector<TaskSummary> task_summaries();

/// Facts of a task without its data where the task fixes them, else from its data;
/// std::invalid_argument when there is no task of that name.
TaskFacts describe_task(const TaskOptions& options, int threads = 1);

/// std::invalid_argument when there is no task of that name or its settings do not fit together.
void check_task(const TaskOptions& options);

/// Reads or makes the data. With `trained`, the facts of a model: its preprocessing and its classes
/// are used and nothing is learned.
TaskData load_task(const TaskOptions& options, int threads, const TaskFacts* trained = nullptr);

/// Reads or makes everything, as it is before it is split.
Records read_task(const TaskOptions& options, int threads);

/// Inputs to predict, as examples of a trained network; they have no labels.
class InputReader {
 public:
  InputReader(const TaskOptions& options, const TaskFacts& facts);

  /// True when inputs may come as lines of text.
  bool takes_lines() const;
  /// True when a file is read line by line, false when it is read as a whole.
  bool files_are_lines() const;

  /// One input given as a line of text; std::invalid_argument names words that the task does not
  /// know.
  Examples lines(const std::vector<std::string>& lines) const;

  /// The inputs of a file (or folder, or archive), with names.
  Examples file(const std::filesystem::path& file, int threads) const;

 private:
  Examples to_examples(Records records) const;

  TaskOptions options_;
  TaskFacts facts_;
};

/// How a user may try a trained network.
struct SampleInput {
  std::string text;  // a line of text, or a file
  bool file = false;
};
SampleInput sample_input(const TaskOptions& options);

/// The label that occurs most in `examples`, and its share.
struct Majority {
  int64_t label = 0;
  double share = 0;
};
Majority majority(const Examples& examples, int64_t classes);

}  // namespace rotrnn
