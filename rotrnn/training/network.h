#pragma once

#include <filesystem>

#include "rotrnn/distributed/group.h"
#include "rotrnn/model/sequence_model.h"
#include "rotrnn/training/adamw.h"
#include "rotrnn/training/checkpoint.h"
#include "rotrnn/training/evaluate.h"
#include "rotrnn/training/tensor_file.h"

namespace rotrnn {

/// Loss and accuracy of a network in evaluation mode; the mode it was in is restored. The processes
/// of a group share the work, and all get the scores.
Scores evaluate(SequenceModelImpl& model, const Examples& examples, Group* group = nullptr);

/// Writes a checkpoint, proves that it can be read, and puts it in the place of `folder` as a
/// whole: after a kill or a full disk there is the old one or the new one. The old one goes to
/// `previous`, or away when that is empty. Without moments the folder can be evaluated but not
/// resumed.
void save_checkpoint(const std::filesystem::path& folder, const NamedTensors& weights,
                     const NamedTensors& moments, const CheckpointHeader& header,
                     const std::filesystem::path& previous = {});

/// The moments of all parameters by name.
NamedTensors moments_of(const AdamW& optimiser);

/// Loads the weights, and the moments when an optimiser is given.
void load_checkpoint(const Checkpoint& checkpoint, SequenceModelImpl& model, AdamW* optimiser);

/// A network made by the config of a checkpoint, with its weights, in evaluation mode.
SequenceModel load_model(const Checkpoint& checkpoint, const EngineOptions& engine);

/// Takes over the weights of another run. A head of another size is left as it is drawn; anything
/// else that differs is an error. Returns true when the head was taken too.
bool take_weights(const std::filesystem::path& folder, SequenceModelImpl& model);

/// Sets LibTorch's threads (0: as many as the process may use) and returns their number.
int use_threads(int64_t threads);

}  // namespace rotrnn
