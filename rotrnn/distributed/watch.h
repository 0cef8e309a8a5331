#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace rotrnn {

/// What all processes of a group can read and write. Each function may throw when the board cannot
/// be reached.
struct Board {
  std::function<void(const std::string& key, const std::string& value)> write;
  std::function<std::optional<std::string>(const std::string& key)> read;
  /// Writes unless the key has a value already; returns the value that stands.
  std::function<std::string(const std::string& key, const std::string& value)> claim;
};

/// How long silence may last, in seconds.
struct WatchLimits {
  double beat = 0.5;      // between signs of life
  double silence = 60;    // no sign of life, or no progress while others wait: given up
  double suspicion = 3;   // the same once a message between processes has failed
  double abandoned = 10;  // the group is lost and the working thread does not come back
};

/// Finds out which process of a group died or hangs, since a failed message names a connection and
/// a missing one nothing at all.
///
/// A thread gives a sign of life every half second and reads those of the others: rank 0 of all,
/// all of rank 0. A verdict is written on the board, so that every process reports the same.
class Watch {
 public:
  /// `names[r]` describes rank r in messages. `abandon(verdict)` is called when the group is lost
  /// and the verdict was not read: the working thread hangs.
  Watch(Board board, int rank, std::vector<std::string> names, WatchLimits limits,
        std::function<void(const std::string&)> abandon);
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  /// The working thread begins to wait for the others. `patient`: however long they take, as long
  /// as they are alive.
  void enter(bool patient);
  /// They all came.
  void leave();

  /// Why the group is lost; empty while it is not.
  std::string verdict();

  /// A message failed, for a reason that does not name a process: waits until it is known who is
  /// gone, for a few seconds, and returns the verdict.
  std::string settle(const std::string& reason);

  /// This process fails by itself: reports it to the others, if that can be done in a moment.
  void report(const std::string& reason);

  /// Until the others have read the verdict, for a moment: the process that keeps the board stays
  /// that long.
  void linger();

 private:
  void work();
  void look();
  void declare(const std::string& text);
  void set(const std::string& verdict);
  void wait_until_published(std::unique_lock<std::mutex>& lock);
  void check_silence(int other, double now);
  void check_progress(double now);

  const Board board_;
  const int rank_;
  const std::vector<std::string> names_;
  const WatchLimits limits_;
  const std::function<void(const std::string&)> abandon_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::string verdict_;
  double verdict_at_ = 0;
  bool known_ = false;      // the working thread knows the verdict
  bool published_ = false;  // and the board has it, if it can be reached
  bool stop_ = false;
  bool trouble_ = false;  // a message failed here or elsewhere
  bool waiting_ = false, patient_ = false;
  double waiting_since_ = 0;
  double last_answer_ = 0;  // what verdict() saw of board_answered_, and how often in a row
  int unanswered_ = 0;
  std::atomic<int64_t> entered_{0};     // waits begun
  std::atomic<double> board_answered_;  // when it last did

  // Of the thread alone.
  struct Seen {
    std::string beat;
    double changed = 0;
  };
  std::vector<Seen> seen_;
  int64_t beats_ = 0;
  std::thread thread_;
};

}  // namespace rotrnn
