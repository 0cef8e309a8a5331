#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "rotrnn/plot/chart.h"
#include "rotrnn/training/config/config.h"

// The paper's experiment on the size of the hidden state: how ‖x_t‖₂ behaves while a network
// trains, layer against layer. Every cell is an ordinary run that records its norms
// (training.norms_every); this file plans the cells and evaluates what they wrote.

namespace rotrnn {

/// The norms of one run over training.
struct NormTrace {
  std::vector<int64_t> steps;
  // [block][probe]: mean over tokens of ‖x_t‖₂, of the whole state and of a head.
  std::vector<std::vector<double>> whole, head;
};

/// Reads the lines that a run with training.norms_every has written to its metrics.jsonl.
NormTrace read_norms(const std::filesystem::path& run);

/// One run of the experiment.
struct NormsCell {
  std::string layer;
  bool deep = false;  // (a) the deep network, or (b) one block
  int64_t seed = 0;
  Config config;
  std::filesystem::path run;  // folder
};

/// What to compare: (a) a deep network of every layer, (b) one block over several seeds.
struct NormsPlan {
  Config config;  // the layer, depth and seed of the cells replace its own
  std::vector<std::string> layers{"rotrnn", "lru"};
  int64_t depth = 8, seeds = 5;
  std::filesystem::path out;
};

/// ListOps as in the paper; `paper` is the full setting, else one of some twenty minutes.
Config norms_config(bool paper, const std::vector<std::string>& settings);

/// The runs of a plan, deep ones first.
std::vector<NormsCell> cells_of(const NormsPlan& plan);

/// How steady a layer's norms are: standard deviation over mean.
struct NormsSummary {
  std::string layer;
  double deep_mean = 0, single_mean = 0;  // of the whole state, over training (and seeds)
  double deep_head_mean = 0, single_head_mean = 0;
  double over_training = 0;         // deep network: mean over blocks of each block's coefficient
  double over_layers = 0;           // deep network: mean over training of the blocks' coefficient
  double single_over_training = 0;  // one block: mean over seeds
  double over_seeds = 0;            // one block: mean over training
};

/// A finished experiment.
struct NormsResult {
  std::vector<NormsCell> cells;
  std::vector<NormTrace> traces;  // one per cell
  std::vector<NormsSummary> summaries;
};

/// Reads the runs and sums them up.
NormsResult collect_norms(const std::vector<NormsCell>& cells);

/// The figure: per layer the blocks of the deep network; then one block over seeds; whole state
/// first, per head below.
std::vector<Chart> norms_charts(const NormsResult& result);

/// The measured numbers, and a page that shows them with the figure; `command` is how to repeat it.
std::string norms_json(const NormsResult& result, const std::string& command);
std::string norms_html(const NormsResult& result, const std::string& command);

}  // namespace rotrnn
