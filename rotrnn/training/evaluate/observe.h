#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>

#include "rotrnn/network/network.h"

// Lines of metrics.jsonl that show the inside of a network; docs/training.md has their form.

namespace rotrnn {

/// {"step", "split": "lambda", "layers": [{"re", "im", "of"}, …]}: the eigenvalues of every block's
/// recurrence, at most 128 of a block, "of" so many; null for a layer that has none. Of layers
/// whose channels have states of their own, a few channels are looked at.
nlohmann::ordered_json lambda_line(Network& network, int64_t step);

/// {"step", "split": "norms", "whole", "head"}: the size of the hidden states on a batch, as
/// training sees it, for every block; null when the layer shows no states.
nlohmann::ordered_json norms_line(Network& network, Workspace& workspace, const PackedInput& batch,
                                  int64_t step);

}  // namespace rotrnn
