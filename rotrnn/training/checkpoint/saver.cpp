#include "rotrnn/training/checkpoint/saver.h"

#include <chrono>
#include <optional>
#include <utility>

namespace rotrnn {

void CheckpointSaver::save(const std::filesystem::path& folder, const Weights& weights,
                           const Optimiser* optimiser, CheckpointHeader header,
                           const std::filesystem::path& previous, std::function<void()> before) {
  wait();
  std::optional<Optimiser> moments;
  if (optimiser != nullptr) moments = *optimiser;
  pending_ =
      std::async(std::launch::async, [folder, previous, weights, moments = std::move(moments),
                                      header = std::move(header), before = std::move(before)] {
        before();
        save_checkpoint(folder, weights, moments ? &*moments : nullptr, header, previous);
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
