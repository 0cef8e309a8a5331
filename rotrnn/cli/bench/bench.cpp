#include "rotrnn/training/bench/bench.h"

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "rotrnn/cli/bench/bench.h"
#include "rotrnn/cli/command.h"
#include "rotrnn/cli/output/json_line.h"
#include "rotrnn/cli/output/text.h"

namespace rotrnn::cli {
namespace {

struct BenchOptions {
  std::string config, memory, lengths;
  std::vector<std::string> settings;
  int64_t batch = 0, length = 0;
  int repeats = 7;
  EngineOptions engine;
  bool json = false;
};

// "100,7,2048" as numbers.
std::vector<int64_t> parse_lengths(const std::string& text) {
  std::vector<int64_t> out;
  for (const std::string& word : split_list(text)) {
    if (word.find_first_not_of("0123456789") != std::string::npos || word.size() > 9 ||
        std::stoll(word) < 1) {
      throw std::invalid_argument(
          fmt::format("--lengths: \"{}\" is not a length; write such as 2048,100,7", word));
    }
    out.push_back(std::stoll(word));
  }
  return out;
}

StepBenchOptions to_bench(const BenchOptions& o) {
  StepBenchOptions bench;
  bench.config = o.config.empty() ? default_config(o.settings) : load_config(o.config, o.settings);
  TrainingOptions& t = bench.config.training;
  t.threads = o.engine.threads;
  t.kernels = o.engine.kernels;
  if (!o.memory.empty()) t.memory = o.memory == "low" ? MemoryMode::low : MemoryMode::normal;
  bench.repeats = o.repeats;
  if (!o.lengths.empty()) {
    bench.lengths = parse_lengths(o.lengths);
  } else {
    const TaskFacts facts = describe_task(bench.config.task);
    const int64_t towers = facts.shape.towers;
    const int64_t length = o.length > 0 ? o.length : facts.typical_length / towers;
    bench.lengths.assign(static_cast<size_t>((o.batch > 0 ? o.batch : t.batch) * towers), length);
  }
  return bench;
}

void print_bench_text(const StepBench& b) {
  fmt::print("{:.1f} ms per step (fastest {:.1f}), {} tokens/s, {} kernels, {} threads\n",
             1e3 * b.seconds_per_step, 1e3 * b.fastest_step,
             grouped(static_cast<int64_t>(b.tokens_per_second)), b.fused ? "fused" : "reference",
             b.threads);
  fmt::print("{:.1f} useful GFLOP/s, {} of the peak of {:.1f}; memory of a step {:.0f} MB\n",
             b.useful_gflops, percent(b.fraction_of_peak), b.peak_gflops, b.peak_memory_mb);
  if (!b.fused) return;
  fmt::print("outside the blocks: {}\n\n", percent(b.outside_blocks));
  std::vector<std::vector<std::string>> rows{{"stage", "ms", "share"}};
  for (const auto& [name, seconds] : b.stages) {
    rows.push_back(
        {name, fmt::format("{:.2f}", 1e3 * seconds), percent(seconds / b.seconds_per_step)});
  }
  fmt::print("{}", table(rows, {1, 2}));
}

void print_bench_json(const BenchOptions& o, const StepBenchOptions& options, const StepBench& b) {
  nlohmann::ordered_json out{{"config", o.config.empty() ? "quickstart" : o.config},
                             {"kernels", b.fused ? "fused" : "reference"},
                             {"threads", b.threads},
                             {"batch", options.lengths.size()},
                             {"seconds_per_step", b.seconds_per_step},
                             {"fastest_step", b.fastest_step},
                             {"tokens_per_second", b.tokens_per_second},
                             {"useful_gflops", b.useful_gflops},
                             {"peak_gflops", b.peak_gflops},
                             {"fraction_of_peak", b.fraction_of_peak},
                             {"peak_memory_mb", b.peak_memory_mb}};
  if (b.fused) {
    out["outside_blocks"] = b.outside_blocks;
    for (const auto& [name, seconds] : b.stages) out["stages"][name] = seconds;
  }
  print_json_line(out);
}

int run_bench(const BenchOptions& o) {
  const StepBenchOptions options = to_bench(o);
  const StepBench result = bench_step(options);
  o.json ? print_bench_json(o, options, result) : print_bench_text(result);
  return 0;
}

}  // namespace

void add_bench(CLI::App& app, Action& action) {
  auto* bench = app.add_subcommand("bench", "Time the program on this machine");
  bench->require_subcommand(1);
  auto o = std::make_shared<BenchOptions>();
  auto* step = bench->add_subcommand("step", "A training step of a config's network, on noise");
  step->add_option("--config", o->config, "TOML file; none: the quick start");
  step->add_option("--set", o->settings, "change a key: --set model.width=64")
      ->take_all()
      ->allow_extra_args(false);
  step->add_option("--batch", o->batch, "sequences (default: the config's)")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 20));
  step->add_option("--length", o->length, "tokens of each (default: typical of the task)")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 28));
  step->add_option("--lengths", o->lengths, "lengths one by one instead, such as 2048,100,7");
  step->add_option("--memory", o->memory, "normal or low (default: the config's)")
      ->check(CLI::IsMember({"normal", "low"}));
  step->add_option("--repeats", o->repeats, "steps to time, after two to warm up")
      ->capture_default_str()
      ->check(CLI::Range(1, 100000));
  add_engine_options(*step, o->engine);
  step->add_flag("--json", o->json, "one line of JSON");
  step->callback([o, &action] { action = [o] { return run_bench(*o); }; });
  add_bench_loader(*bench, action);
  add_bench_messages(*bench, action);
  add_bench_stream(*bench, action);
  add_bench_score(*bench, action);
}

}  // namespace rotrnn::cli
