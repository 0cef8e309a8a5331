#include "rotrnn/data/task_keys.h"

#include <fmt/format.h>

#include "rotrnn/data/task.h"

namespace rotrnn {
namespace {

struct Add {
  std::vector<TaskKey>& keys;

  template <typename Place>
  void operator()(const char* name, Affects affects, Place place, std::string help) const {
    keys.push_back({{std::string("task.") + name, std::move(place), std::move(help)}, affects});
  }
};

}  // namespace

std::vector<TaskKey> bind_task_keys(TaskOptions& t) {
  std::vector<TaskKey> keys;
  const Add add{keys};
  std::vector<std::string> names;
  for (const TaskSummary& task : task_summaries()) names.push_back(task.name);
  add("name", Affects::reading, &t.name,
      fmt::format("what to learn: {}; docs/data.md", fmt::join(names, ", ")));
  add("path", Affects::files, &t.path,
      "folder, archive or file with the data; empty: made on the spot, if the task can");
  add("train_path", Affects::files, &t.train_path, "instead of path: the training data alone");
  add("validation_path", Affects::files, &t.validation_path, "the same for validation");
  add("test_path", Affects::files, &t.test_path, "the same for the test");
  add("max_tokens", Affects::reading, IntegerKey{&t.max_tokens},
      "longer sequences are cut; counts the end mark of a text; 0: the task's own limit");
  add("train", Affects::making, IntegerKey{&t.counts.train},
      "training examples to make, or at most to read; 0: as many as the task has");
  add("validation", Affects::making, IntegerKey{&t.counts.validation},
      "the same for validation, also when it is held out of train");
  add("test", Affects::making, IntegerKey{&t.counts.test}, "the same for the test");
  add("seed", Affects::reading, IntegerKey{&t.seed},
      "seed of the made data, of held-out examples, of permuted");
  add("split", Affects::nothing, choice(t.split),
      "how examples without a split get one; automatic: stratified for classes, time for a "
      "forecast, else random");
  add("validation_share", Affects::reading, NumberKey{&t.validation_share, 0, 1, true},
      "share that is held out for validation");
  add("test_share", Affects::reading, NumberKey{&t.test_share, 0, 1, true},
      "share that is held out for the test");
  add("validation_from", Affects::nothing, choice(t.validation_from),
      "where validation comes from when the data have none; test: as public code does, which "
      "selects on the test split");
  add("label_pattern", Affects::reading, &t.label_pattern,
      "regular expression for the label in the name of a file; its first group; empty: the folder");
  add("group_pattern", Affects::reading, &t.group_pattern,
      "the same for the group, such as a speaker, that stays in one split");
  add("validation_pattern", Affects::nothing, &t.validation_pattern,
      "regular expression: examples with such a name are validation");
  add("test_pattern", Affects::nothing, &t.test_pattern, "the same for the test");
  add("target", Affects::reading, choice(t.target),
      "what to predict: a class, values, a class for every step, or the next values");
  add("text_column", Affects::reading, &t.text_column, "CSV: the column with the text");
  add("series_column", Affects::reading, &t.series_column,
      "CSV: the column with a whole series, its numbers separated by spaces");
  add("channel_columns", Affects::reading, &t.channel_columns,
      "series: columns that are channels, separated by commas; empty: all that are not named "
      "otherwise");
  add("label_column", Affects::reading, &t.label_column, "CSV, series: the column with the class");
  add("target_columns", Affects::reading, &t.target_columns,
      "CSV, series: columns with the target values, separated by commas");
  add("id_column", Affects::reading, &t.id_column,
      "series: the column that names the series a row belongs to");
  add("group_column", Affects::reading, &t.group_column, "CSV, series: the column with the group");
  add("horizon", Affects::nothing, IntegerKey{&t.horizon, 1, 1 << 20}, "forecast: steps ahead");
  add("window", Affects::nothing, IntegerKey{&t.window},
      "forecast: steps of one example, cut from a long series; 0: all of it");
  add("tokens", Affects::nothing, choice(t.tokens), "what one token of a text is");
  add("min_frequency", Affects::nothing, IntegerKey{&t.min_frequency, 1},
      "characters that are rarer in train become one unknown token");
  add("normalisation", Affects::nothing, choice(t.normalisation),
      "of numbers: mean 0 and standard deviation 1 per channel, learned on train; as the task's "
      "public code does; or unchanged");
  add("keep_every", Affects::nothing, IntegerKey{&t.keep_every, 1, 1 << 20},
      "use every k-th step of a series only; 2: half the sampling rate");
  add("words", Affects::reading, &t.words,
      "Speech Commands: the words that are the classes, separated by commas; empty: all");
  add("contour_length", Affects::making, IntegerKey{&t.contour_length, 2, 1000},
      "Pathfinder, Path-X: dashes of each of the two curves that are made");
  add("distractors", Affects::making, IntegerKey{&t.distractors, -1, 1000},
      "Pathfinder, Path-X: other curves in a made picture; -1: as the Long Range Arena has them");
  add("permuted", Affects::nothing, &t.permuted, "MNIST: read the pixels in one random order");
  add("cache", Affects::nothing, &t.cache,
      "folder for decoded data; empty: rotrnn in the user's cache folder; none: no cache");
  add("memory_mb", Affects::nothing, IntegerKey{&t.memory_mb, 1, 1 << 30},
      "decoded data above this are kept in a file instead of in memory");
  add("min_length", Affects::making, IntegerKey{&t.listops.min_length},
      "ListOps: made lists are longer than this");
  add("max_length", Affects::making, IntegerKey{&t.listops.max_length, 2},
      "ListOps: and shorter than this");
  add("max_depth", Affects::making, IntegerKey{&t.listops.max_depth, 1},
      "ListOps: depth of the deepest digits; the root is at 1");
  add("max_args", Affects::making, IntegerKey{&t.listops.max_args, 2},
      "ListOps: most arguments of an operator");
  add("operator_probability", Affects::making,
      NumberKey{&t.listops.operator_probability, 0, 1, true},
      "ListOps: probability that a node is an operator");
  return keys;
}

}  // namespace rotrnn
