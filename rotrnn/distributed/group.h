#pragma once

#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>

#include "rotrnn/distributed/rendezvous.h"
#include "rotrnn/distributed/shard.h"

namespace rotrnn {

/// The group is lost: a process died, hangs, failed or cannot be reached. The message names it.
struct GroupLost : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Processes that train one network together; a single process is a group of one, and every
/// operation does nothing. All processes must call the same operations in the same order.
///
/// Every operation throws GroupLost instead of waiting for a process that is gone.
class Group {
 public:
  Group();
  /// Joins the others through librotrnn_c10d.so; std::runtime_error names the ranks that did not
  /// join within `timeout` seconds. Later, a process that is silent or keeps the others waiting
  /// for that long is given up.
  /// `bind`: processes of a machine that may use the same CPUs divide them.
  Group(const Rendezvous& rendezvous, double timeout, bool bind = true);
  /// Leaves together with the others when all is well, else at once.
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  int rank() const { return rendezvous_.rank; }
  int size() const { return rendezvous_.size; }
  bool alone() const { return rendezvous_.size == 1; }
  bool first() const { return rendezvous_.rank == 0; }
  Shard shard() const { return {rendezvous_.rank, rendezvous_.size}; }

  /// Threads for this process: its part of the CPUs that it shares with others of the group.
  int threads() const;

  /// Sums over all processes, in place; the same bits everywhere.
  void all_reduce(double* values, size_t count);
  void all_reduce(float* values, size_t count);

  /// What rank 0 has, to all.
  void broadcast(void* bytes, size_t count);
  std::string broadcast(const std::string& text);

  /// Returns when all ranks have arrived. `patient`: without a time limit while they are alive.
  void barrier(bool patient = false);

  /// This process is about to end with an error; the others end with it.
  void fail(const std::string& reason);

  struct Impl;

 private:
  Rendezvous rendezvous_;
  std::unique_ptr<Impl> impl_;  // none: alone
};

}  // namespace rotrnn
