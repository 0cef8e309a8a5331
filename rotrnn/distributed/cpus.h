#pragma once

#include <string>
#include <vector>

#include "rotrnn/distributed/shard.h"

namespace rotrnn {

/// A CPU as the system numbers it, and where it is; CPUs of one core share it by hyper-threading.
struct Cpu {
  int number = 0, package = 0, core = 0;
};

/// Those this process may use.
std::vector<Cpu> usable_cpus();

/// Such as "0,1,2,3".
std::string cpu_list(const std::vector<Cpu>& cpus);

/// The part of one of several processes that share these CPUs: neighbours, those of a core together
/// where that can be. The parts differ by one at most; with more processes than CPUs, one of them.
std::vector<Cpu> cpus_of(std::vector<Cpu> cpus, const Shard& shard);

/// Keeps this thread, and those it starts from now on, on these CPUs. Returns whether the system
/// agreed.
bool stay_on(const std::vector<Cpu>& cpus);

/// Threads that this one starts while this object lives do not preempt a computing thread before
/// its time slice ends.
class Humble {
 public:
  Humble();
  ~Humble();
  Humble(const Humble&) = delete;
  Humble& operator=(const Humble&) = delete;

 private:
  int policy_;
};

}  // namespace rotrnn
