#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "rotrnn/data/task_options.h"

namespace rotrnn {

/// Why a key of the config has its value.
struct Reason {
  std::string key;  // such as "task.label_column"
  std::string why;
};

/// The settings that read some data, as far as the data show them.
struct Guess {
  TaskOptions task;
  std::vector<Reason> reasons;      // of the settings that are not defaults, in a good order
  std::vector<std::string> advice;  // what else a user may want to set, and when
};

/// Looks at a file, folder or archive and says how to read it. `task` names its kind when it is
/// known, and `given` has what the user has set: columns that need not be guessed, a target.
/// std::runtime_error says what is there and what to do when nothing is, nothing is recognised, or
/// several kinds are mixed.
Guess guess_task(const std::filesystem::path& path, const std::string& task = "",
                 const TaskOptions& given = {});

}  // namespace rotrnn
