#include "rotrnn/training/bench/bench_loader.h"

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "rotrnn/cli/bench/bench.h"
#include "rotrnn/cli/output/json_line.h"
#include "rotrnn/cli/output/text.h"

namespace rotrnn::cli {
namespace {

struct BenchLoaderOptions {
  std::string config;
  std::vector<std::string> settings;
  double seconds = 5;
  bool json = false;
};

int run_bench_loader(const BenchLoaderOptions& o) {
  const Config config =
      o.config.empty() ? default_config(o.settings) : load_config(o.config, o.settings);
  const LoaderBench b = bench_loader(config, o.seconds);
  const double ratio = b.loader_rate / b.training_rate;
  if (o.json) {
    print_json_line(nlohmann::ordered_json{{"config", o.config},
                                           {"examples", b.examples},
                                           {"tokens", b.tokens},
                                           {"read_seconds", b.read_seconds},
                                           {"cached_seconds", b.cached_seconds},
                                           {"loader_tokens_per_second", b.loader_rate},
                                           {"training_tokens_per_second", b.training_rate},
                                           {"ratio", ratio},
                                           {"together_tokens_per_second", b.together_rate},
                                           {"waited_share", b.waited}});
    return 0;
  }
  const auto rate = [](double r) { return grouped(static_cast<int64_t>(r)); };
  fmt::print("{} examples, {} tokens; read in {:.2f} s, from the cache in {:.2f} s\n",
             grouped(b.examples), grouped(b.tokens), b.read_seconds, b.cached_seconds);
  fmt::print("loader alone    {:>14} tokens/s, {:.1f} × the speed of training\n",
             rate(b.loader_rate), ratio);
  fmt::print("training alone  {:>14} tokens/s\n", rate(b.training_rate));
  fmt::print("together        {:>14} tokens/s, {} of the time waiting for data\n",
             rate(b.together_rate), percent(b.waited));
  return 0;
}

}  // namespace

void add_bench_loader(CLI::App& bench, Action& action) {
  auto options = std::make_shared<BenchLoaderOptions>();
  auto* command =
      bench.add_subcommand("loader", "Reading data and building batches, compared with training");
  command->add_option("--config", options->config, "TOML file; none: the quick start");
  command->add_option("--set", options->settings, "change a key: --set task.path=DIR")
      ->take_all()
      ->allow_extra_args(false);
  command->add_option("--seconds", options->seconds, "of each measurement")
      ->capture_default_str()
      ->check(CLI::Range(0.01, 3600.0));
  command->add_flag("--json", options->json, "one line of JSON");
  command->callback(
      [options, &action] { action = [options] { return run_bench_loader(*options); }; });
}

}  // namespace rotrnn::cli
