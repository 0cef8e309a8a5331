#include "rotrnn/training/saver.h"

#include <chrono>
#include <utility>

namespace rotrnn {
namespace {

NamedTensors copy_of(NamedTensors tensors) {
  const torch::NoGradGuard no_grad;
  for (auto& [name, tensor] : tensors) tensor = tensor.detach().clone();
  return tensors;
}

}  // namespace

void CheckpointSaver::save(const std::filesystem::path& folder, const SequenceModelImpl& model,
                           const AdamW* optimiser, CheckpointHeader header,
                           const std::filesystem::path& previous, std::function<void()> before) {
  wait();
  pending_ = std::async(std::launch::async,
                        [folder, previous, weights = copy_of(state_of(model)),
                         moments = copy_of(optimiser ? moments_of(*optimiser) : NamedTensors()),
                         header = std::move(header), before = std::move(before)] {
                          before();
                          save_checkpoint(folder, weights, moments, header, previous);
                        });
}

void CheckpointSaver::check() {
  if (pending_.valid() && pending_.wait_for(std::chrono::seconds(0)) == std::future_status::ready) {
    pending_.get();
  }
}

void CheckpointSaver::wait() {
  if (pending_.valid()) pending_.get();
}

}  // namespace rotrnn
