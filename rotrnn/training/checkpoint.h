#pragma once

#include <filesystem>
#include <string>

#include "rotrnn/data/task.h"
#include "rotrnn/training/config.h"

namespace rotrnn {

/// What a run must remember besides its tensors to go on as if it had never stopped.
struct TrainState {
  int64_t step = 0;    // steps done
  int64_t tokens = 0;  // tokens seen
  // Best validation score so far (accuracy, or minus the loss for values) and the step it was at.
  double best_score = 0;
  int64_t best_step = -1;
  // Losses since the last line of metrics.jsonl.
  double loss_sum = 0;
  int64_t loss_count = 0;
};

/// A checkpoint folder without its tensors: state.json.
struct CheckpointHeader {
  Config config;
  TaskFacts facts;
  TrainState state;
  std::string version;
};

/// Names of the files of a checkpoint folder.
inline constexpr char kWeightsFile[] = "weights.safetensors";
inline constexpr char kOptimiserFile[] = "optimiser.safetensors";
inline constexpr char kStateFile[] = "state.json";

/// Reads state.json; std::runtime_error with the path when it is missing or not right.
CheckpointHeader read_header(const std::filesystem::path& checkpoint);

/// The bytes of state.json.
std::string header_text(const CheckpointHeader& header);

enum class Which { best, last };

/// The checkpoint folder of a run, or the folder itself when it is one; std::runtime_error when
/// there is none. `best` falls back to `last`.
std::filesystem::path find_checkpoint(const std::filesystem::path& run, Which which);

}  // namespace rotrnn
