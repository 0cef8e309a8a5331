#include "rotrnn/training/checkpoint/network_checkpoint.h"

#include <fmt/format.h>

#include <stdexcept>

#include "rotrnn/base/threads.h"
#include "rotrnn/io/atomic_file.h"
#include "rotrnn/training/checkpoint/weight_file.h"

namespace rotrnn {

void save_checkpoint(const std::filesystem::path& folder, const Weights& weights,
                     const Optimiser* optimiser, const CheckpointHeader& header,
                     const std::filesystem::path& previous) {
  const std::filesystem::path fresh = folder.string() + ".new";
  std::vector<NamedTensor> moments;
  if (optimiser != nullptr) moments = tensors_of(weights.layout(), *optimiser);
  try {
    write_checkpoint(fresh, header, tensors_of(weights), moments);
    previous.empty() ? replace_folder(fresh, folder) : rotate_folder(fresh, folder, previous);
  } catch (...) {
    std::error_code ignored;
    std::filesystem::remove_all(fresh, ignored);
    throw;
  }
}

void load_checkpoint(const Checkpoint& checkpoint, Weights& weights, Optimiser* optimiser) {
  load_weights(checkpoint.weights.value(), weights);
  if (optimiser != nullptr) {
    load_moments(checkpoint.moments.value(), weights.layout(), *optimiser);
  }
}

Network load_network(const Checkpoint& checkpoint, const EngineOptions& engine) {
  Network network(checkpoint.header.config.model, checkpoint.header.facts.shape, 0);
  load_checkpoint(checkpoint, network.weights(), nullptr);
  network.engine = engine;
  return network;
}

bool take_weights(const std::filesystem::path& folder, Weights& weights) {
  const SafeTensorFile file = read_checkpoint(folder, Parts::weights).weights.value();
  const auto* head = weights.layout().find("head.weight");
  const bool same_head =
      file.contains("head.weight") && file.at("head.weight").shape == head->shape;
  std::vector<NamedTensor> taken;
  for (const NamedTensor& t : tensors_of(weights)) {
    if (!same_head && t.name.starts_with("head.")) continue;
    if (!file.contains(t.name) || file.at(t.name).shape != t.tensor.shape) {
      throw std::invalid_argument(fmt::format(
          "--init-from {}: its \"{}\" is {}, this model needs [{}]; the [model] settings must be "
          "the same",
          folder.string(), t.name,
          file.contains(t.name) ? fmt::format("[{}]", fmt::join(file.at(t.name).shape, ", "))
                                : "missing",
          fmt::join(t.tensor.shape, ", ")));
    }
    taken.push_back({t.name, file.at(t.name)});
  }
  if (same_head) {
    load_weights(file, weights);
    return true;
  }
  // The new head keeps its initial values: the rest of the file is loaded.
  for (const NamedTensor& t : tensors_of(weights)) {
    if (t.name.starts_with("head.")) taken.push_back(t);
  }
  const std::string bytes = safetensors_bytes(folder, taken);
  load_weights(SafeTensorFile::from_bytes(bytes, folder.string()), weights);
  return false;
}

int thread_count(int64_t threads) {
  return threads > 0 ? static_cast<int>(threads) : kernels::available_threads();
}

}  // namespace rotrnn
