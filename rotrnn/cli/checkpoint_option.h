#pragma once

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <string>

#include "rotrnn/training/checkpoint/checkpoint.h"

namespace rotrnn::cli {

/// --checkpoint of the commands that read a run.
struct CheckpointOption {
  std::string name;  // empty: best, or what `run` itself is

  /// Which checkpoint of `run` is meant; std::invalid_argument when `run` is another one itself.
  Which of(const std::string& run) const;
};

/// Declares --checkpoint.
void add_checkpoint_option(CLI::App& command, CheckpointOption& option);

}  // namespace rotrnn::cli
