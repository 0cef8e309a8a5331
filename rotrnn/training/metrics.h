#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

namespace rotrnn {

/// metrics.jsonl: one JSON object a line, the truth about a run. Every line has "step" and
/// "split"; "seconds" and "tokens_per_second" are the only fields that depend on the clock.
class MetricsLog {
 public:
  /// Opens the file of a run for appending. Lines after `step`, test results and a torn last line,
  /// which a killed run may have left, are dropped first, so that a resumed run writes what an
  /// unbroken one would have written.
  MetricsLog(const std::filesystem::path& file, int64_t step);

  /// Appends a line and hands it to the system at once.
  void write(const nlohmann::ordered_json& line);

  /// Returns when the lines are on the disk.
  void sync();

 private:
  std::filesystem::path file_;
  std::ofstream out_;
};

}  // namespace rotrnn
