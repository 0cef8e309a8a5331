#pragma once

#include <atomic>
#include <chrono>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "rotrnn/board/metrics_file.h"
#include "rotrnn/board/runs.h"

namespace rotrnn::board {

/// Which part of the curves of a run is asked for.
struct SeriesQuery {
  double from = 0, to = std::numeric_limits<double>::infinity();
  size_t points = 1200;
  /// The "at" of an earlier answer: only what came since is sent then.
  std::string since;
};

/// Runs below folders as JSON (README.md), read on request and only as far as they grew.
/// Runs are named by ids of the list alone, so no request can name a path. For any number of
/// threads.
class Api {
 public:
  explicit Api(const std::vector<std::filesystem::path>& roots);

  /// All runs and comparisons.
  std::string runs();

  /// The curves of a run; none when there is no such run.
  std::optional<std::string> series(const std::string& id, const SeriesQuery& query);

  /// The eigenvalues over training, at most `frames` of them, and the last confusion matrices.
  std::optional<std::string> detail(const std::string& id, size_t frames = 60);

  /// The table of a comparison.
  std::optional<std::string> comparison(const std::string& id);

  /// What was found last; looks again at most twice a second.
  Found found();

  /// The metrics of a run, read to their end.
  std::optional<Metrics> metrics(const std::string& id);

 private:
  struct Followed {
    std::mutex mutex;
    MetricsFile file;
    std::chrono::steady_clock::time_point read;
  };
  std::shared_ptr<Followed> follow(const std::string& id, RunInfo& info);
  void read_new(Followed& run, const RunInfo& info);

  RunFinder finder_;
  std::mutex mutex_;  // of all below
  Found found_;
  bool looked_ = false;
  std::chrono::steady_clock::time_point when_;
  std::map<std::string, std::shared_ptr<Followed>> followed_;
  std::vector<std::string> recent_;  // ids in followed_, the last asked for at the end
};

}  // namespace rotrnn::board
