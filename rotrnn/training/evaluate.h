#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "rotrnn/training/checkpoint.h"

namespace rotrnn {

/// How well a network does on a set of examples.
struct Scores {
  double loss = 0;
  double accuracy = 0;
  int64_t examples = 0;
};

/// What `rotrnn eval` reports.
struct Evaluation {
  Scores scores;
  Majority majority;  // the label that says most often, of the same split
  int64_t step = 0;   // of the checkpoint
};

/// Evaluates a run on a split ("train", "validation" or "test"); `data_path` replaces task.path
/// when it is not empty.
Evaluation evaluate_run(const std::filesystem::path& run, Which which, const std::string& split,
                        const std::string& data_path, const EngineOptions& engine);

}  // namespace rotrnn
