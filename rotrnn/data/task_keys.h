#pragma once

#include <vector>

#include "rotrnn/base/option_key.h"
#include "rotrnn/data/task_options.h"

namespace rotrnn {

/// What a key of [task] changes of the records that a reader returns or a generator makes. The
/// cache of decoded data is named by all keys but those that change nothing.
enum class Affects {
  nothing,  // it is used later, when records are split and prepared, or not for data at all
  files,    // it names files, whose content counts
  making,   // records that are made
  reading,  // records that are read, too
};

/// A key of [task] in a config.
struct TaskKey {
  BoundKey key;
  Affects affects;
};

/// Every key of [task], bound to `options`.
std::vector<TaskKey> bind_task_keys(TaskOptions& options);

}  // namespace rotrnn
