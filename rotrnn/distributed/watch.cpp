#include "rotrnn/distributed/watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <stdexcept>

namespace rotrnn {
namespace {

double now() {
  using namespace std::chrono;
  return duration<double>(steady_clock::now().time_since_epoch()).count();
}

std::chrono::duration<double> seconds(double s) {
  return std::chrono::duration<double>(s);
}

std::string beat_key(int rank) {
  return fmt::format("beat/{}", rank);
}

std::string read_key(int rank) {
  return fmt::format("read/{}", rank);
}

}  // namespace

Watch::Watch(Board board, int rank, std::vector<std::string> names, WatchLimits limits,
             std::function<void(const std::string&)> abandon)
    : board_(std::move(board)),
      rank_(rank),
      names_(std::move(names)),
      limits_(limits),
      abandon_(std::move(abandon)),
      board_answered_(now()),
      seen_(names_.size(), {"", now()}),
      thread_([this] { work(); }) {}

Watch::~Watch() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Watch::enter(bool patient) {
  const std::lock_guard lock(mutex_);
  waiting_ = true;
  patient_ = patient;
  waiting_since_ = now();
  ++entered_;
}

void Watch::leave() {
  const std::lock_guard lock(mutex_);
  waiting_ = false;
}

std::string Watch::verdict() {
  const std::lock_guard lock(mutex_);
  // The thread hangs in a call to the board when its host is cut off. Only after some calls: this
  // process may itself have been stopped, and then hears in a moment what the others decided.
  const double answered = board_answered_;
  unanswered_ = answered == last_answer_ ? unanswered_ + 1 : 0;
  last_answer_ = answered;
  if (verdict_.empty() && unanswered_ > 3 && now() - answered > limits_.silence) {
    set(fmt::format("{} has not answered for {:.0f} s", names_[0], limits_.silence));
  }
  if (!verdict_.empty()) known_ = true;
  return verdict_;
}

std::string Watch::settle(const std::string& reason) {
  std::unique_lock lock(mutex_);
  trouble_ = known_ = true;
  const double limit = 2 * limits_.suspicion + 4 * limits_.beat;
  changed_.wait_for(lock, seconds(limit), [this] { return !verdict_.empty(); });
  if (verdict_.empty()) {
    set(fmt::format("a message between the ranks failed, though all are alive: {}", reason));
    wait_until_published(lock);
  }
  return verdict_;
}

void Watch::report(const std::string& reason) {
  std::unique_lock lock(mutex_);
  known_ = true;
  if (!verdict_.empty()) return;
  set(fmt::format("{} failed: {}", names_[static_cast<size_t>(rank_)], reason));
  wait_until_published(lock);
}

void Watch::set(const std::string& verdict) {
  if (!verdict_.empty()) return;
  verdict_ = verdict;
  verdict_at_ = now();
  changed_.notify_all();
}

// Only the thread talks to the board, where a call may hang.
void Watch::wait_until_published(std::unique_lock<std::mutex>& lock) {
  changed_.wait_for(lock, seconds(4 * limits_.beat + 0.5), [this] { return published_; });
}

void Watch::linger() {
  const double end = now() + 4 * limits_.beat + 0.5;
  try {
    for (int other = 0; other < static_cast<int>(names_.size()); ++other) {
      while (other != rank_ && now() < end && !board_.read(read_key(other))) {
        std::this_thread::sleep_for(seconds(limits_.beat / 10));
      }
    }
  } catch (const std::exception&) {
    // The board is gone, so there is nothing to wait for.
  }
}

void Watch::work() {
  std::unique_lock lock(mutex_);
  while (!stop_) {
    if (verdict_.empty()) {
      lock.unlock();
      try {
        look();
      } catch (const std::exception&) {
        declare(fmt::format("{} cannot be reached: the connection broke", names_[0]));
      }
      lock.lock();
    }
    if (!verdict_.empty() && !published_) {
      const std::string verdict = verdict_;
      lock.unlock();
      try {
        board_.claim("verdict", verdict);
        board_.write(read_key(rank_), "1");
      } catch (const std::exception&) {
        // It was the board's keeper who failed.
      }
      lock.lock();
      published_ = true;
      changed_.notify_all();
    }
    if (!verdict_.empty() && !known_ && now() - verdict_at_ > limits_.abandoned) {
      const std::string verdict = verdict_;
      lock.unlock();
      abandon_(verdict);
      return;
    }
    changed_.wait_for(lock, seconds(limits_.beat),
                      [this] { return stop_ || (!verdict_.empty() && !published_); });
  }
}

// One round: a sign of life, the verdict of others, and a look at those to watch.
void Watch::look() {
  board_.write(beat_key(rank_), fmt::format("{} {}", ++beats_, entered_.load()));
  if (const auto text = board_.read("verdict")) {
    const std::lock_guard lock(mutex_);
    set(*text);
    return;
  }
  bool trouble = false;
  {
    const std::lock_guard lock(mutex_);
    trouble = trouble_;
  }
  if (trouble) {
    board_.write("trouble", "1");
  } else if (board_.read("trouble")) {
    const std::lock_guard lock(mutex_);
    trouble_ = true;
  }
  board_answered_ = now();
  if (rank_ == 0) {
    for (int other = 1; other < static_cast<int>(names_.size()); ++other) {
      check_silence(other, now());
    }
  } else {
    check_silence(0, now());
  }
  check_progress(now());
}

void Watch::check_silence(int other, double time) {
  Seen& seen = seen_[static_cast<size_t>(other)];
  const auto beat = board_.read(beat_key(other));
  if (beat && *beat != seen.beat) {
    seen = {*beat, time};
    return;
  }
  double limit = limits_.silence;
  {
    const std::lock_guard lock(mutex_);
    if (trouble_) limit = std::min(limit, limits_.suspicion);
  }
  if (time - seen.changed > limit) {
    declare(fmt::format("{} has not been heard of for {:.0f} s", names_[static_cast<size_t>(other)],
                        time - seen.changed));
  }
}

// This process waits for those that have begun fewer waits.
void Watch::check_progress(double time) {
  {
    const std::lock_guard lock(mutex_);
    if (!waiting_ || patient_ || time - waiting_since_ <= limits_.silence) return;
  }
  const int64_t mine = entered_;
  int slowest = -1;
  int64_t fewest = mine;
  for (int other = 0; other < static_cast<int>(names_.size()); ++other) {
    const auto beat = board_.read(beat_key(other));
    const size_t space = beat ? beat->find(' ') : std::string::npos;
    const int64_t entered =
        space == std::string::npos ? 0 : std::strtoll(beat->c_str() + space, nullptr, 10);
    if (entered < fewest) {
      fewest = entered;
      slowest = other;
    }
  }
  declare(slowest < 0 ? fmt::format("all ranks have waited for each other for {:.0f} s; is the "
                                    "network between them cut?",
                                    limits_.silence)
                      : fmt::format("{} is alive but the others have waited for it for {:.0f} s",
                                    names_[static_cast<size_t>(slowest)], limits_.silence));
}

void Watch::declare(const std::string& text) {
  std::string stands = text;
  try {
    stands = board_.claim("verdict", text);
  } catch (const std::exception&) {
    // Then each reports what it sees.
  }
  const std::lock_guard lock(mutex_);
  set(stands);
}

}  // namespace rotrnn
