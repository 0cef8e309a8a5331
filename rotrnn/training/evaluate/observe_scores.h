#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "rotrnn/training/evaluate/evaluate.h"

namespace rotrnn {

/// Adds "confusion", rows of counts by true class, and "classes", their names, to a line of
/// metrics.jsonl; nothing for values, and for more than 64 classes.
void add_confusion(nlohmann::ordered_json& line, const Scores& scores,
                   const std::vector<std::string>& classes);

/// What the process holds of the machine's memory now, in MB; negative when the system does not
/// report it.
double resident_mb();

}  // namespace rotrnn
