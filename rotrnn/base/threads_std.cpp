#ifdef __unix__
#include <pthread.h>
#endif
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "rotrnn/base/subnormals.h"
#include "rotrnn/base/threads.h"

namespace rotrnn::kernels {
namespace {

inline void pause() {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

/// True as soon as `ready` is, false after about 20 µs: the phases of a block follow each other
/// faster than a thread wakes up, and a longer wait would take the CPU from others.
template <class Ready>
bool spin(const Ready& ready) {
  for (int i = 0; i < 500; ++i) {
    if (ready()) return true;
    pause();
  }
  return false;
}

thread_local bool is_worker = false;

/// Threads that wait for work. Never destroyed: a thread may still be inside when the process ends.
class Pool {
 public:
  /// False when another caller has the pool, or it is closed: nothing was run.
  bool run(int threads, const std::function<void(int)>& body);
  /// Lets the workers finish what they have and joins them.
  void close();

 private:
  /// What the workers read, under mutex_. Participant p runs body(p), body(p + participants), ….
  struct Job {
    uint64_t number = 0;
    const std::function<void(int)>* body = nullptr;
    int threads = 0, participants = 0;
  };

  static void work(const Job& job, int participant) {
    const SubnormalsAreZero zero;
    for (int t = participant; t < job.threads; t += job.participants) (*job.body)(t);
  }
  void grow(size_t workers);
  void serve(int participant, uint64_t seen);

  std::atomic<bool> taken_ = false;
  std::mutex mutex_;
  std::condition_variable wake_, done_;
  Job job_;
  bool stop_ = false;
  std::atomic<uint64_t> number_ = 0;  // job_.number, to spin on
  std::atomic<int> left_ = 0;         // workers that have not finished the job
  std::vector<std::thread> workers_;
  const bool spins_ = available_threads() > 1;
};

void Pool::grow(size_t workers) {
  while (workers_.size() < workers) {
    const int participant = static_cast<int>(workers_.size()) + 1;
    try {
      workers_.emplace_back(&Pool::serve, this, participant, job_.number);
    } catch (const std::system_error&) {
      return;  // as many as the system gives
    }
  }
}

void Pool::serve(int participant, uint64_t seen) {
  is_worker = true;
  for (;;) {
    const auto ready = [&] { return number_.load(std::memory_order_acquire) != seen; };
    Job job;
    if (spins_) spin(ready);
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] { return ready() || stop_; });
      if (!ready()) return;
      job = job_;
    }
    seen = job.number;
    // Not wanted, this worker may miss jobs; wanted, it cannot: the caller waits for it.
    if (participant >= job.participants) continue;
    work(job, participant);
    if (left_.fetch_sub(1, std::memory_order_acq_rel) > 1) continue;
    const std::lock_guard lock(mutex_);
    done_.notify_one();
  }
}

bool Pool::run(int threads, const std::function<void(int)>& body) {
  if (taken_.exchange(true, std::memory_order_acquire)) return false;
  grow(static_cast<size_t>(threads) - 1);
  Job job;
  {
    const std::lock_guard lock(mutex_);
    job.number = job_.number + 1;
    job.body = &body;
    job.threads = threads;
    job.participants = std::min(threads, static_cast<int>(workers_.size()) + 1);
    job_ = job;
    left_.store(job.participants - 1, std::memory_order_relaxed);
    number_.store(job.number, std::memory_order_release);
  }
  wake_.notify_all();
  work(job, 0);
  const auto ready = [&] { return left_.load(std::memory_order_acquire) == 0; };
  if (!spins_ || !spin(ready)) {
    std::unique_lock lock(mutex_);
    done_.wait(lock, ready);
  }
  taken_.store(false, std::memory_order_release);
  return true;
}

void Pool::close() {
  if (is_worker) return;  // exit() called by a body: it cannot wait for itself
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  // The present owner keeps the pool; no other caller gets it any more.
  if (taken_.exchange(true, std::memory_order_acquire)) return;
  for (std::thread& worker : workers_) worker.join();
}

std::atomic<Pool*> the_pool = nullptr;

/// From the loading of this library to the end of the process.
const struct Lifetime {
  Lifetime() {
#ifdef __unix__
    // fork() copies the pool but not its threads: the child makes its own and leaves this one be.
    pthread_atfork(nullptr, nullptr, [] { the_pool.store(nullptr); });
#endif
  }
  ~Lifetime() {
    if (Pool* pool = the_pool.load()) pool->close();
  }
} lifetime;

/// Without a lock: fork() could copy it locked.
Pool& pool() {
  if (Pool* made = the_pool.load(std::memory_order_acquire)) return *made;
  auto mine = std::make_unique<Pool>();
  Pool* first = nullptr;
  if (!the_pool.compare_exchange_strong(first, mine.get())) return *first;
  return *mine.release();
}

}  // namespace

void parallel_for(int threads, const std::function<void(int)>& body) {
  if (threads > 1 && pool().run(threads, body)) return;
  const SubnormalsAreZero zero;
  for (int t = 0; t < std::max(threads, 1); ++t) body(t);
}

const char* thread_backend() {
  return "std";
}

}  // namespace rotrnn::kernels
