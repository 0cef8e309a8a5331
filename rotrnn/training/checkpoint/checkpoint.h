#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "rotrnn/data/task.h"
#include "rotrnn/io/formats/safetensors.h"
#include "rotrnn/training/config/config.h"

namespace rotrnn {

/// What a run saves besides its tensors, to go on as if it had never stopped.
struct TrainState {
  int64_t step = 0;    // steps done
  int64_t tokens = 0;  // tokens seen
  // Best validation score so far (accuracy, or minus the loss for values) and the step it was at.
  double best_score = 0;
  int64_t best_step = -1;
  // Losses since the last line of metrics.jsonl.
  double loss_sum = 0;
  int64_t loss_count = 0;
  // Steps left out because the loss or the gradient was not finite: all, and the latest in a row.
  int64_t skipped = 0;
  int64_t skipped_in_a_row = 0;
};

/// A checkpoint folder without its tensors: state.json.
struct CheckpointHeader {
  Config config;
  TaskFacts facts;
  TrainState state;
  std::string version;
};

/// What to read of a checkpoint: state.json alone, with the weights, with the moments too.
enum class Parts { header, weights, all };

/// A checkpoint in memory.
struct Checkpoint {
  std::filesystem::path folder;
  CheckpointHeader header;
  std::optional<SafeTensorFile> weights, moments;
  bool checked = true;  // by its checksums; false: of format 2, which has none
};

/// Names of the files of a checkpoint folder.
inline constexpr char kWeightsFile[] = "weights.safetensors";
inline constexpr char kOptimiserFile[] = "optimiser.safetensors";
inline constexpr char kStateFile[] = "state.json";

/// Reads a checkpoint and checks every file that is read by its checksum, and the sizes in
/// state.json against the weights, before a network is made of them; std::runtime_error that names
/// the file when one is missing, damaged or wrong. What a running training replaces meanwhile is
/// read again.
Checkpoint read_checkpoint(const std::filesystem::path& folder, Parts parts);

/// Writes a checkpoint to `folder`, flushes it to the disk, and proves that it can be read: back
/// from there, by its checksums. Without `moments` it can be used but not resumed.
void write_checkpoint(const std::filesystem::path& folder, const CheckpointHeader& header,
                      std::span<const NamedTensor> weights, std::span<const NamedTensor> moments);

/// The bytes of state.json, and back; `where` stands for the path in messages.
std::string header_text(const CheckpointHeader& header);
CheckpointHeader parse_header(std::string_view text, const std::string& where);

/// Whether a folder is a checkpoint, not a run that has some.
bool is_checkpoint(const std::filesystem::path& folder);

enum class Which { best, last };

/// The checkpoint folder of a run, or the folder itself when it is one; std::runtime_error when
/// there is none. `best` falls back to `last`.
std::filesystem::path find_checkpoint(const std::filesystem::path& run, Which which);

}  // namespace rotrnn
