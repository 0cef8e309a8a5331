#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "rotrnn/training/compare/presets.h"
#include "rotrnn/training/config/config.h"
#include "rotrnn/training/trainer.h"

namespace rotrnn {

/// What to compare: every variant is trained with every seed, each such cell with the same budget.
struct CompareRequest {
  Config base;
  std::vector<Variant> variants;
  int64_t seeds = 3;        // base.training.seed and the numbers after it
  double minutes = 0;       // of a cell; 0: base.training.steps optimiser steps
  bool match = true;        // choose the state of other layers by the first one's parameter count
  bool skip_unfit = false;  // leave out variants whose sizes do not fit
  std::filesystem::path out;
  std::string command;  // how to start it again
};

enum class CellState { waiting, unfinished, failed, finished };

/// One variant with one seed: a run folder with a file cell.json in it.
struct Cell {
  std::filesystem::path folder;
  int64_t seed = 0;
  CellState state = CellState::waiting;
  double minutes = 0;  // the budget that `steps` follow from; 0: given as steps
  int64_t steps = 0;   // 0: not timed yet
  RunTiming timing;    // what the steps of a budget of minutes were computed from
  double seconds = 0;  // that it has run, restarts included
  bool running = false;
  std::string error;  // of a failed one
  // Scores of the weights that did best on validation; of a finished cell.
  int64_t best_step = 0;
  double validation_accuracy = 0, test_accuracy = 0, test_loss = 0;
  double majority = 0;  // share of the most frequent label of the test split
  double tokens_per_second = 0, peak_memory_mb = 0;
};

/// A variant with its whole config, the state matched, and its cells.
struct ComparedVariant {
  Variant variant;
  Config config;
  int64_t parameters = 0;
  std::vector<Cell> cells;
};

struct Comparison {
  CompareRequest request;
  std::vector<ComparedVariant> variants;

  bool finished() const;
};

/// Mean and standard deviation (n - 1; 0 for fewer than two values).
struct Spread {
  int64_t count = 0;
  double mean = 0, deviation = 0;
};
Spread spread_of(const std::vector<double>& values);

/// A row of the table, over the finished cells of a variant.
struct CompareRow {
  Spread accuracy;  // on the test split
  double majority = 0, steps = 0, minutes = 0;
  // Medians, as the first cell of a process pays for the program's own pages.
  double tokens_per_second = 0, peak_memory_mb = 0;
};
CompareRow row_of(const ComparedVariant& variant);

/// The admissible state whose parameter count is nearest to `target`; the smaller of two as near.
/// `count` gives the parameters of a network, and grows with its state.
int64_t match_state(const ModelOptions& options, int64_t target,
                    const std::function<int64_t(const ModelOptions&)>& count);

/// The steps of a run that takes `seconds` in all, at least 1.
int64_t steps_that_fit(const RunTiming& timing, double seconds, int64_t evaluate_every);

/// Resolves the configs, matches the states, and reads what is in the folder already.
/// std::invalid_argument when the folder holds cells of another comparison, naming what differs.
Comparison open_comparison(const CompareRequest& request);

/// compare.json.
nlohmann::ordered_json to_json(const Comparison& comparison);

/// Called while comparing; each may be empty.
struct CompareObserver {
  std::function<void(const std::string&)> message;
  TrainObserver train;  // of every cell; its `stop` stops the whole comparison
  std::function<void(const Comparison&)> changed;  // when it starts, and after every cell
};

/// Trains all cells that are not finished, one after the other; compare.json is written before the
/// first and after every one. A cell that fails is noted, and the others go on.
Comparison compare(const CompareRequest& request, const CompareObserver& observer);

}  // namespace rotrnn
