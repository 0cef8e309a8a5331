#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "rotrnn/base/stopwatch.h"
#include "rotrnn/cli/bench/bench.h"
#include "rotrnn/cli/output/json_line.h"
#include "rotrnn/cli/output/text.h"
#include "rotrnn/distributed/group.h"

namespace rotrnn::cli {
namespace {

struct BenchMessagesOptions {
  double timeout = 60;
  bool json = false;
};

// The median of the times of one sum over all ranks.
double time_sum(Group& group, size_t bytes) {
  std::vector<double> values(bytes / sizeof(double));
  const int repeats = bytes < (1 << 20) ? 200 : 20;
  std::vector<double> times;
  for (int i = 0; i < repeats; ++i) {
    std::fill(values.begin(), values.end(), 1.0);
    group.barrier();
    double seconds = 0;
    {
      const kernels::Stopwatch watch(&seconds);
      group.all_reduce(values.data(), values.size());
    }
    times.push_back(seconds);
  }
  std::nth_element(times.begin(), times.begin() + repeats / 2, times.end());
  return times[static_cast<size_t>(repeats) / 2];
}

int run_bench_messages(const BenchMessagesOptions& options) {
  Group group(find_rendezvous(environment()), options.timeout);
  if (group.alone()) {
    throw std::invalid_argument(fmt::format(
        "bench messages: there is one process; start several, such as {} launch -n 2 -- bench "
        "messages",
        program()));
  }
  std::vector<std::vector<std::string>> rows{{"bytes", "time", "rate"}};
  for (const size_t bytes : {8u, 2u << 10, 64u << 10, 1u << 20, 4u << 20, 16u << 20}) {
    const double seconds = time_sum(group, bytes);
    if (!group.first()) continue;
    if (options.json) {
      print_json_line(
          nlohmann::ordered_json{{"ranks", group.size()}, {"bytes", bytes}, {"seconds", seconds}});
    }
    rows.push_back({grouped(static_cast<int64_t>(bytes)), fmt::format("{:.0f} µs", 1e6 * seconds),
                    fmt::format("{}/s", cli::bytes(static_cast<double>(bytes) / seconds))});
  }
  if (group.first() && !options.json) {
    fmt::print("sums over {} ranks, median\n{}", group.size(), table(rows, {0, 1, 2}));
  }
  return 0;
}

}  // namespace

void add_bench_messages(CLI::App& bench, Action& action) {
  auto options = std::make_shared<BenchMessagesOptions>();
  auto* command = bench.add_subcommand("messages", "Sums over the ranks of a group");
  command->add_option("--timeout", options->timeout, "seconds that a rank may be silent")
      ->capture_default_str()
      ->check(CLI::Range(1.0, 86400.0));
  command->add_flag("--json", options->json, "one line of JSON per size");
  command->callback(
      [options, &action] { action = [options] { return run_bench_messages(*options); }; });
}

}  // namespace rotrnn::cli
