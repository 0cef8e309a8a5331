#pragma once

#include <cstddef>
#include <functional>

namespace rotrnn::runtime {

/// Runs work(stage, item, thread) for every stage and item, each after (stage - 1, item) and
/// (stage, item - 1): items go through the stages one behind the other. An item enters when the one
/// `slots` before it has left. A thread takes the furthest stage that is ready, so it mostly stays
/// with its item; one thread alone gets everything done. `work` must not throw.
void run_wave(int threads, size_t stages, size_t items, size_t slots,
              const std::function<void(size_t stage, size_t item, size_t thread)>& work);

}  // namespace rotrnn::runtime
