#pragma once

#include <filesystem>
#include <memory>

#include "rotrnn/network/network.h"
#include "rotrnn/training/checkpoint/checkpoint.h"
#include "rotrnn/training/optimiser.h"

namespace rotrnn {

/// Writes a checkpoint, proves that it can be read, and puts it in the place of `folder` as a
/// whole: after a kill or a full disk there is the old one or the new one. The old one goes to
/// `previous`, or away when that is empty. Without an optimiser the folder can be evaluated but not
/// resumed.
void save_checkpoint(const std::filesystem::path& folder, const Weights& weights,
                     const Optimiser* optimiser, const CheckpointHeader& header,
                     const std::filesystem::path& previous = {});

/// Loads the weights, and the moments when an optimiser is given.
void load_checkpoint(const Checkpoint& checkpoint, Weights& weights, Optimiser* optimiser);

/// A network made by the config of a checkpoint, with its weights.
Network load_network(const Checkpoint& checkpoint, const EngineOptions& engine);

/// Takes over the weights of another run. A head of another size keeps its initial values; anything
/// else that differs is an error. Returns true when the head was taken too.
bool take_weights(const std::filesystem::path& folder, Weights& weights);

/// The number of threads to use; 0: as many as the process may.
int thread_count(int64_t threads);

}  // namespace rotrnn
