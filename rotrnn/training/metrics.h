#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "rotrnn/io/formats/event_file.h"

namespace rotrnn {

enum class TensorBoard { no, yes };

/// The numbers of a line of metrics.jsonl as points of curves: "train/loss", "validation/accuracy",
/// and of measurements by layer "norms/head/layer0".
std::vector<Scalar> scalars_of(const nlohmann::ordered_json& line);

/// metrics.jsonl: one JSON object per line, the record of a run. Every line has "step" and
/// "split"; only "seconds", "tokens_per_second" and "memory_mb" depend on the machine.
class MetricsLog {
 public:
  /// Opens the file of a run for appending. Lines after `step`, test results and a torn last line,
  /// which a killed run may have left, are dropped first, so that a resumed run writes what an
  /// unbroken one would have written. Every line goes to a new event file beside it too, if asked
  /// for.
  MetricsLog(const std::filesystem::path& file, int64_t step,
             TensorBoard tensorboard = TensorBoard::no);

  /// Appends a line and hands it to the system at once.
  void write(const nlohmann::ordered_json& line);

  /// Returns when the lines are on the disk.
  void sync();

 private:
  std::filesystem::path file_;
  std::ofstream out_;
  std::optional<EventFile> events_;
};

}  // namespace rotrnn
