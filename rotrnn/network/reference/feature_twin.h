#pragma once

#include <vector>

#include "rotrnn/network/batches/packed.h"
#include "rotrnn/network/options.h"
#include "rotrnn/network/weights.h"
#include "rotrnn/spec/data_shape.h"

namespace rotrnn {

/// What features/feature_pass.h computes, behind the front end if there is one, by the plain twins
/// in double: of packed samples. Options are resolved.
std::vector<double> feature_twin(const ModelOptions& options, const DataShape& shape,
                                 const Weights& weights, const PackedInput& batch);

}  // namespace rotrnn
