#pragma once

#include <string>
#include <vector>

#include "rotrnn/data/sampler.h"
#include "rotrnn/training/config/config.h"

// What a run derives from its data.

namespace rotrnn {

/// Which example is in which split: splits.tsv of a run folder.
std::string splits_text(const TaskData& data);

/// The model with its front end resolved, and S4's kernel as long as the longest sequence of
/// tokens, unless model.s4.max_length is set.
ModelOptions with_length(ModelOptions options, const TaskData& data);

/// The batches of training; std::invalid_argument when there are too few examples.
Sampler make_sampler(const Config& config, const TaskData& data);

/// Weights with which every class counts the same, however many examples it has; on average a
/// target weighs 1. std::invalid_argument when targets are values.
std::vector<double> balanced_weights(const TaskData& data);

}  // namespace rotrnn
