#pragma once

#include "rotrnn/data/task.h"

// What is known of the paper's tasks without their data, so that a config can be described and
// measured before anything is downloaded.

namespace rotrnn {

TaskFacts text_facts(const TaskOptions& options);
TaskFacts retrieval_facts(const TaskOptions& options);
TaskFacts image_facts(const TaskOptions& options);
TaskFacts pathfinder_facts(const TaskOptions& options);
TaskFacts pathx_facts(const TaskOptions& options);
TaskFacts speech_commands_facts(const TaskOptions& options);

/// Tokens that are kept of a text where task.max_tokens does not say.
inline constexpr int64_t kTextTokens = 4096, kRetrievalTokens = 4000;

}  // namespace rotrnn
