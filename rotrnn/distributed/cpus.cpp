#include "rotrnn/distributed/cpus.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <fstream>
#include <tuple>

namespace rotrnn {
namespace {

// 0 where the system does not report it.
int topology(int cpu, const char* what) {
  std::ifstream in(fmt::format("/sys/devices/system/cpu/cpu{}/topology/{}", cpu, what));
  int value = 0;
  return in >> value ? value : 0;
}

void set_policy(int policy) {
  const sched_param none{};
  ::sched_setscheduler(0, policy, &none);
}

}  // namespace

std::vector<Cpu> usable_cpus() {
  std::vector<Cpu> out;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return out;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &set)) {
      out.push_back({i, topology(i, "physical_package_id"), topology(i, "core_id")});
    }
  }
  return out;
}

std::string cpu_list(const std::vector<Cpu>& cpus) {
  std::string out;
  for (const Cpu& cpu : cpus) out += fmt::format("{}{}", out.empty() ? "" : ",", cpu.number);
  return out;
}

std::vector<Cpu> cpus_of(std::vector<Cpu> cpus, const Shard& shard) {
  std::sort(cpus.begin(), cpus.end(), [](const Cpu& a, const Cpu& b) {
    return std::tie(a.package, a.core, a.number) < std::tie(b.package, b.core, b.number);
  });
  const auto count = static_cast<int64_t>(cpus.size());
  if (count == 0) return cpus;
  const int64_t begin = count * shard.rank / shard.size;
  const int64_t end = std::max(count * (shard.rank + 1) / shard.size, begin + 1);
  return {cpus.begin() + begin, cpus.begin() + end};
}

bool stay_on(const std::vector<Cpu>& cpus) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const Cpu& cpu : cpus) CPU_SET(cpu.number, &set);
  return ::sched_setaffinity(0, sizeof set, &set) == 0;
}

Humble::Humble() : policy_(::sched_getscheduler(0)) {
  if (policy_ == SCHED_OTHER) set_policy(SCHED_BATCH);
}

Humble::~Humble() {
  if (policy_ == SCHED_OTHER) set_policy(SCHED_OTHER);
}

}  // namespace rotrnn
