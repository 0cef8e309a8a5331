#include "rotrnn/cli/version.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

#include "rotrnn/base/threads.h"
#include "rotrnn/cli/build_facts.h"
#include "rotrnn/cli/commit.h"
#include "rotrnn/distributed/c10d_library.h"
#include "rotrnn/kernels/simd/simd.h"
#include "rotrnn/version.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace rotrnn::cli {
namespace {

/// The CPU's own name, as Linux reports it; "" where it does not.
std::string cpu_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("model name")) continue;
    const size_t start = line.find_first_not_of(" \t", line.find(':') + 1);
    return start == std::string::npos ? "" : line.substr(start);
  }
  return "";
}

/// Of the instruction sets that the tables of kernels ask for, those of this CPU.
std::vector<std::string> cpu_features() {
  std::vector<std::string> has;
#if defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;  // clang 14 cannot ask for f16c by name
  const bool f16c = __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
  const std::pair<const char*, bool> all[] = {
      {"avx2", __builtin_cpu_supports("avx2") != 0},
      {"fma", __builtin_cpu_supports("fma") != 0},
      {"bmi2", __builtin_cpu_supports("bmi2") != 0},
      {"f16c", f16c},
      {"avx512f", __builtin_cpu_supports("avx512f") != 0},
      {"avx512vl", __builtin_cpu_supports("avx512vl") != 0},
      {"avx512dq", __builtin_cpu_supports("avx512dq") != 0},
      {"avx512bw", __builtin_cpu_supports("avx512bw") != 0},
      {"avx512cd", __builtin_cpu_supports("avx512cd") != 0}};
  for (const auto& [name, there] : all) {
    if (there) has.emplace_back(name);
  }
#elif defined(__aarch64__)
  has.emplace_back("asimd");
#endif
  return has;
}

}  // namespace

std::string version_text(bool json) {
  const auto features = cpu_features();
  const auto targets = kernels::available_targets();
  const int threads = kernels::available_threads();
  if (json) {
    return nlohmann::ordered_json{{"version", kVersion},
                                  {"commit", kCommit},
                                  {"compiler", kCompiler},
                                  {"build", kBuildType},
                                  {"cpu", cpu_name()},
                                  {"cpus", sysconf(_SC_NPROCESSORS_ONLN)},
                                  {"features", features},
                                  {"simd", kernels::table().name},
                                  {"simd_available", targets},
                                  {"threads", threads},
                                  {"thread_backend", kernels::thread_backend()},
                                  {"processes", describe_c10d()}}
        .dump();
  }
  return fmt::format(
      "rotrnn {}\n"
      "commit     {}\n"
      "compiler   {}, {}\n"
      "CPU        {} x {}: {}\n"
      "kernels    {} (of {})\n"
      "threads    {} by default, {}\n"
      "processes  {}",
      kVersion, kCommit, kCompiler, kBuildType, sysconf(_SC_NPROCESSORS_ONLN), cpu_name(),
      fmt::join(features, " "), kernels::table().name, fmt::join(targets, ", "), threads,
      kernels::thread_backend(), describe_c10d());
}

}  // namespace rotrnn::cli
