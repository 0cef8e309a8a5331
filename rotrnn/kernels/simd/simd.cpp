#include "rotrnn/kernels/simd/simd.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <atomic>
#include <cstdlib>
#include <stdexcept>

#include "rotrnn/kernels/simd/targets/tables.h"

namespace rotrnn::kernels {
namespace {

bool cpu_has_avx2() {
#if defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;  // clang 14 cannot ask for f16c by name
  const bool f16c = __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("bmi2") && f16c;
#else
  return false;
#endif
}

bool cpu_has_avx512() {
#if defined(__x86_64__)
  return cpu_has_avx2() && __builtin_cpu_supports("avx512f") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd");
#else
  return false;
#endif
}

std::vector<const Table*> tables() {
  std::vector<const Table*> all;
  if (cpu_has_avx512()) all.push_back(table_avx512());
  if (cpu_has_avx2()) all.push_back(table_avx2());
  all.push_back(table_baseline());
  all.push_back(table_scalar());
  std::erase(all, nullptr);
  return all;
}

const Table* find(const std::string& name) {
  std::string known;
  for (const Table* table : tables()) {
    if (name.empty() || name == table->name) return table;
    known += known.empty() ? "" : ", ";
    known += table->name;
  }
  throw std::invalid_argument("SIMD target \"" + name + "\" is not in this build or CPU; choose " +
                              known);
}

std::atomic<const Table*>& current() {
  static std::atomic<const Table*> table = [] {
    const char* wish = std::getenv("ROTRNN_SIMD");
    return find(wish == nullptr ? "" : wish);
  }();
  return table;
}

}  // namespace

const Table& table() {
  return *current().load(std::memory_order_relaxed);
}

void set_target(const std::string& name) {
  current().store(find(name));
}

std::vector<std::string> available_targets() {
  std::vector<std::string> names;
  for (const Table* table : tables()) names.emplace_back(table->name);
  return names;
}

}  // namespace rotrnn::kernels
