#pragma once

#include <cstdint>
#include <filesystem>

#include "rotrnn/training/checkpoint.h"

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

/// Writes the folded model of a run (docs/model_format.md). It is loaded and compared with the
/// network before it takes its name: std::runtime_error, and no file, when they differ.
ExportReport export_model(const ExportRequest& request);

}  // namespace rotrnn
