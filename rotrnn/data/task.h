#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "rotrnn/data/shape.h"
#include "rotrnn/data/task_options.h"

namespace rotrnn {

/// Sequences of one split, one after the other: number i is [offsets[i], offsets[i + 1]).
struct Examples {
  std::vector<int32_t> tokens;  // one of the two
  std::vector<float> values;    // [.., channels]
  std::vector<int64_t> offsets{0};
  std::vector<int64_t> labels;

  int64_t size() const { return static_cast<int64_t>(labels.size()); }
  int64_t length(int64_t i) const { return offsets[i + 1] - offsets[i]; }
  int64_t total_length() const { return offsets.back(); }
};

/// What is known of a task without its data.
struct TaskFacts {
  DataShape shape;
  int64_t typical_length = 0;
  std::vector<std::string> vocabulary, classes;
};

/// A task with its data in memory.
struct TaskData {
  TaskFacts facts;
  Examples train, validation, test;
};

/// Facts of a task; std::invalid_argument when there is no task of that name.
TaskFacts describe_task(const TaskOptions& options);

/// Reads or makes the data.
TaskData load_task(const TaskOptions& options, int threads);

/// One input given as text, as the task reads it; unknown words are an error that names them.
std::vector<int32_t> encode_text(const TaskOptions& options, std::string_view text);

/// True when the task's inputs to predict come as whole files (read_inputs), not as lines of text.
bool reads_files(const TaskOptions& options);

/// The inputs of a file to predict, as the task reads them; their labels mean nothing.
Examples read_inputs(const TaskOptions& options, const std::filesystem::path& file);

/// What a user may try a trained network on: a line of text, or the path of a file.
std::string sample_input(const TaskOptions& options);

/// The label that occurs most in `examples`, and its share.
struct Majority {
  int64_t label = 0;
  double share = 0;
};
Majority majority(const Examples& examples, int64_t classes);

}  // namespace rotrnn
