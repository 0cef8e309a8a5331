#pragma once

#include "rotrnn/distributed/group.h"
#include "rotrnn/network/losses.h"
#include "rotrnn/network/network.h"
#include "rotrnn/training/evaluate/evaluate.h"

namespace rotrnn {

/// The loss that a config asks for; std::invalid_argument when it does not fit the targets.
LossOptions loss_options(const TrainingOptions& training, const DataShape& shape);

/// Loss and accuracy of a network on examples, by its running statistics. The processes of a group
/// share the work, and all get the scores.
Scores evaluate(Network& network, Workspace& workspace, const LossOptions& loss,
                const Examples& examples, Group* group = nullptr);

}  // namespace rotrnn
