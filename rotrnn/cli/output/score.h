#pragma once

#include <string>
#include <vector>

#include "rotrnn/training/evaluate/evaluate.h"

namespace rotrnn::cli {

/// "accuracy 59.5 %", or the errors of values beside those of the naive prediction.
std::string score_text(const Scores& scores);

/// Precision, recall and F1 of every class, and the confusion matrix when there are not too many.
std::string class_table(const Scores& scores, const std::vector<std::string>& classes);

}  // namespace rotrnn::cli
