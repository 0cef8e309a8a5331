#pragma once

#include <vector>

#include "rotrnn/data/task.h"
#include "rotrnn/fit/fit.h"

namespace rotrnn {

/// The examples that a network is fitted to, with their targets: those of train, and those that
/// were held out of it for validation, unless the user chose them. A fit estimates its error by
/// leaving examples out, so that it needs no validation split. The data must live as long.
struct FitData {
  fit::Source source;
  fit::Targets targets;
  int64_t joined = 0;  // examples of validation that are in it
};

FitData fit_data(const TaskData& data, const TaskOptions& options);

/// Series of some examples.
fit::Source examples_source(const Examples& examples, const DataShape& shape);

/// Their targets, without groups and weights.
fit::Targets examples_targets(const Examples& examples, const DataShape& shape);

}  // namespace rotrnn
