#pragma once

#include <filesystem>

#include "rotrnn/network/network.h"
#include "rotrnn/training/fit/fit_run.h"

namespace rotrnn {

/// Writes a fitted network as a run: config.toml, metrics.jsonl, splits.tsv, a checkpoint, and
/// rotations.svg, the strongest rotations by frequency and memory. The folder must hold no run.
void write_fit(const std::filesystem::path& out, const Network& network, const TaskData& data,
               const fit::Fitted& model, const FitOutcome& outcome);

}  // namespace rotrnn
