#pragma once

#include <span>

#include "rotrnn/data/records.h"
#include "rotrnn/spec/preprocess.h"

// What tasks learn on train, by kind of input.

namespace rotrnn {

/// Texts: characters or bytes by task.tokens; at most task.max_tokens of them.
Preprocessing prepare_text(const TaskOptions& options, const Records& records,
                           std::span<const int64_t> train);

/// Series of numbers: by task.normalisation.
Preprocessing prepare_values(const TaskOptions& options, const Records& records,
                             std::span<const int64_t> train);

/// One or the other: text when the records are bytes of one channel in units of 1.
Preprocessing prepare_either(const TaskOptions& options, const Records& records,
                             std::span<const int64_t> train);

}  // namespace rotrnn
