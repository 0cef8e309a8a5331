#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rotrnn/data/examples.h"
#include "rotrnn/data/records.h"

namespace rotrnn {

/// The examples of every split.
struct SplitParts {
  std::vector<Part> train, validation, test;
};

/// Divides records by what they say themselves, by task.test_pattern and task.validation_pattern,
/// and what is left by task.split; a function of the records, the options and task.seed alone.
/// `messages` gets what a user should know. std::invalid_argument when a split would be empty.
SplitParts split_records(const Records& records, const TaskOptions& options,
                         std::vector<std::string>& messages);

}  // namespace rotrnn
