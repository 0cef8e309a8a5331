#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "rotrnn/training/checkpoint/checkpoint.h"

namespace rotrnn {

struct ExportRequest {
  std::filesystem::path run, out;
  Which which = Which::best;
  bool overwrite = false;
};

/// What was written, and how it compares with the network it came from.
struct ExportReport {
  int64_t step = 0;        // of the weights
  int64_t bytes = 0;       // of the file
  int64_t parameters = 0;  // numbers in it
  bool streams = false;    // false: whole sequences only
  // Over random sequences: the largest difference between logits of the file, run by the runtime,
  // and those of the network in double; and the largest logit.
  double difference = 0, largest = 0;
};

/// The bytes of a folded model (docs/deploy.md) and what is known of it.
struct FoldedRun {
  std::string bytes;
  ExportReport report;
};

/// Folds the model of a run; it is loaded and compared with the network: std::runtime_error when
/// they differ.
FoldedRun fold_run(const std::filesystem::path& run, Which which);

/// Writes the folded model of a run, atomically.
ExportReport export_model(const ExportRequest& request);

}  // namespace rotrnn
