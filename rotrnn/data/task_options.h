#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "rotrnn/base/enum_names.h"
#include "rotrnn/data/tasks/listops/listops.h"

namespace rotrnn {

/// Examples of each split to make, or at most to read; 0: as many as the task has.
struct SplitCounts {
  int64_t train = 0, validation = 0, test = 0;
};

/// What a network predicts: the class of a sequence, values, the class of every step, or the next
/// values at every step.
enum class TaskTarget { label, value, token_label, forecast };
template <>
inline constexpr std::array kNames<TaskTarget>{"class", "value", "token_class", "forecast"};

/// What one token of a text is.
enum class TokenKind { characters, bytes };
template <>
inline constexpr std::array kNames<TokenKind>{"characters", "bytes"};

/// How numbers get mean 0 and standard deviation 1: by those of each channel, learned
/// on train; as the task's public code does; or not at all.
enum class Scaling { standard, upstream, none };
template <>
inline constexpr std::array kNames<Scaling>{"standard", "upstream", "none"};

/// How examples that come without a split get one; automatic: stratified for classes, by time for a
/// forecast, else random.
enum class SplitBy { automatic, stratified, random, group, time };
template <>
inline constexpr std::array kNames<SplitBy>{"automatic", "stratified", "random", "group", "time"};

/// Where validation comes from when the data have none.
enum class ValidationFrom { train, test };
template <>
inline constexpr std::array kNames<ValidationFrom>{"train", "test"};

/// The settings of [task] in a config. Empty text: not given.
struct TaskOptions {
  std::string name = "listops";
  std::string path;        // folder, archive or file; empty: made on the spot, if the task can
  int64_t max_tokens = 0;  // longer sequences are cut; 0: the task's own limit
  SplitCounts counts;
  int64_t seed = 0;  // of data that are made, and of random choices from data that are read

  // How the network sees a sequence.
  TokenKind tokens = TokenKind::characters;
  int64_t min_frequency = 15;  // of a character in train, to have a token of its own
  Scaling normalisation = Scaling::standard;
  bool permuted = false;
  int64_t keep_every = 1;  // of the samples of a series

  // How the data are split.
  std::string train_path, validation_path, test_path;  // instead of `path`
  SplitBy split = SplitBy::automatic;
  double validation_share = 0.1, test_share = 0.1;
  ValidationFrom validation_from = ValidationFrom::train;
  // Regular expressions searched for in the name of an example; the first group of the first two
  // is the label and the group.
  std::string label_pattern, group_pattern, validation_pattern, test_pattern;

  // Tables. Lists of columns are separated by commas.
  TaskTarget target = TaskTarget::label;
  std::string text_column, series_column, channel_columns, label_column, target_columns;
  std::string id_column, group_column;
  int64_t horizon = 1;  // steps ahead to forecast
  int64_t window = 0;   // steps of one example cut from a long series; 0: the whole series

  int64_t contour_length = 14;  // Pathfinder: paddles of a curve that is made
  int64_t distractors = -1;     // other curves; -1: as many as in the Long Range Arena
  std::string words;  // Speech Commands: the words that are the classes; empty: all there are

  // Loading.
  std::string cache;         // folder for decoded data; empty: the user's cache, "none": no files
  int64_t memory_mb = 1024;  // decoded data above this are kept in a file
  ListOpsOptions listops;
};

/// The folder for decoded data: task.cache, or the user's cache folder.
std::filesystem::path cache_folder(const TaskOptions& options);

/// "a, b" as {"a", "b"}; empty text gives none.
std::vector<std::string> split_names(const std::string& text);

}  // namespace rotrnn
