#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rotrnn/data/guess/guess.h"
#include "rotrnn/training/config/config.h"

// From the properties of data to a config that trains on them.

namespace rotrnn {

/// What the sequences are made of, as far as it decides how a network starts.
enum class DataKind { text, lists, sound, pictures, series };

/// The properties of data that settings are chosen by.
struct DataFacts {
  DataKind kind = DataKind::series;
  DataShape shape;
  int64_t train = 0, validation = 0, test = 0;  // examples
  // Steps of the training sequences; 95 of 100 are no longer than `usual`.
  int64_t shortest = 0, median = 0, usual = 0, longest = 0, tokens = 0;
  int64_t rate = 0;  // samples per second, of sound
  std::vector<std::string> classes;
  std::vector<int64_t> counts;  // of the classes in train
};

/// Looks at data that were read.
DataFacts facts_of(const TaskOptions& task, const TaskData& data);

/// The properties in words, one line each.
std::vector<std::string> describe(const DataFacts& facts);

/// Cuts a few long series that are to be forecast into examples (task.window), unless that is set.
/// Whether it did: the properties have changed then.
bool cut_into_windows(Guess& guess, const DataFacts& facts);

/// A config with the reasons of its settings, in the order to write them in.
struct Suggestion {
  Config config;
  std::vector<Reason> reasons;
  std::vector<std::string> advice;
  double seconds = 0;  // that training will take; 0: not known
  double length = 1;   // mean length of a sequence in training
};

/// What the parts of a run take, in seconds, as measured.
struct RunCost {
  double setup = 0, step = 0, validation = 0, test = 0;
};

/// Chooses everything by the facts alone. std::runtime_error when there is too little to learn
/// from.
Suggestion suggest(const Guess& guess, const DataFacts& facts);

/// Chooses the steps by what a step takes: those that the data are worth, at most half an hour's;
/// or those that fit into `minutes` when it is not 0. Keys in `fixed`, which the user has set,
/// stay.
void fit_time(Suggestion& suggestion, const DataFacts& facts, const RunCost& cost, double minutes,
              const std::vector<std::string>& fixed = {});

/// The suggestion as TOML with a comment for every key; parse_config() gives back its config.
/// `header` are lines of comment to start with.
std::string to_commented_toml(const Suggestion& suggestion, const std::vector<std::string>& header);

}  // namespace rotrnn
