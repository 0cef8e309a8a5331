#include "rotrnn/runtime/wave.h"

#include <atomic>
#include <thread>
#include <vector>

#include "rotrnn/base/threads.h"

namespace rotrnn::runtime {
namespace {

// On a line of its own: others are written by other threads.
struct alignas(64) Stage {
  std::atomic<size_t> done{0};  // items that have gone through
  std::atomic<bool> taken{false};
};

}  // namespace

void run_wave(int threads, size_t stages, size_t items, size_t slots,
              const std::function<void(size_t, size_t, size_t)>& work) {
  std::vector<Stage> state(stages);
  const auto done = [&](size_t s) { return state[s].done.load(std::memory_order_acquire); };
  // The item that waits before this stage, or `items`.
  const auto ready = [&](size_t s) {
    const size_t item = done(s);
    if (item == items) return items;
    return (s == 0 ? item < done(stages - 1) + slots : item < done(s - 1)) ? item : items;
  };
  kernels::parallel_for(threads, [&](int t) {
    int idle = 0;
    while (done(stages - 1) < items) {
      bool worked = false;
      for (size_t s = stages; s-- > 0 && !worked;) {
        if (ready(s) == items || state[s].taken.exchange(true, std::memory_order_acquire)) continue;
        // Another thread may have been here since.
        if (const size_t item = ready(s); item != items) {
          work(s, item, static_cast<size_t>(t));
          state[s].done.store(item + 1, std::memory_order_release);
          worked = true;
        }
        state[s].taken.store(false, std::memory_order_release);
      }
      idle = worked ? 0 : idle + 1;
      if (idle > 100) std::this_thread::yield();
    }
  });
}

}  // namespace rotrnn::runtime
