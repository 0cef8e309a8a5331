#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>

#include "rotrnn/cli/bench/bench.h"
#include "rotrnn/cli/output/json_line.h"
#include "rotrnn/cli/output/text.h"
#include "rotrnn/runtime/score.h"
#include "rotrnn/spec/kinds.h"

namespace rotrnn::cli {
namespace {

using Clock = std::chrono::steady_clock;
using runtime::ModelInfo;

struct BenchScoreOptions {
  std::string model;
  int64_t batch = 1, length = 16000;
  int threads = 0, repeats = 7;
  bool json = false;
};

// Multiplications and additions of a step that are of use, as docs/performance.md counts them.
double flops_of_step(const ModelInfo& info) {
  const auto D = static_cast<double>(info.width), N = 2 * static_cast<double>(info.states);
  const Activation activation = by_name<Activation>(info.activation).value_or(Activation::none);
  const double glu = has_value(activation) ? 4 : has_gate(activation) ? 2 : 0;
  if (info.system == "channel") {
    // A complex product, an input and a read-out of every state of every channel.
    const double states = (info.bidirectional ? 2 : 1) * 13 * D * N / 2;
    return static_cast<double>(info.depth) * (states + glu * D * D);
  }
  return static_cast<double>(info.depth) * ((info.bidirectional ? 6 : 4) * D * N + glu * D * D);
}

int run_bench_score(const BenchScoreOptions& o) {
  const auto model = runtime::Model::load(o.model);
  const ModelInfo& info = model->info();
  runtime::Scorer scorer(model, o.threads);
  const int64_t sequences = o.batch * info.towers, steps = sequences * o.length;
  std::vector<int64_t> offsets;
  for (int64_t i = 0; i <= sequences; ++i) offsets.push_back(i * o.length);
  std::mt19937 engine(1);
  std::vector<float> values(static_cast<size_t>(info.tokens ? 0 : steps * info.inputs));
  std::vector<int32_t> tokens(static_cast<size_t>(info.tokens ? steps : 0));
  std::normal_distribution<float> value(0, 0.1f);
  for (float& x : values) x = value(engine);
  std::uniform_int_distribution<int32_t> token(
      0, static_cast<int32_t>(std::min<int64_t>(info.inputs, 1 << 30) - 1));
  for (int32_t& x : tokens) x = token(engine);
  std::vector<double> times;
  for (int i = 0; i < o.repeats + 1; ++i) {  // the first one warms up
    const auto begin = Clock::now();
    info.tokens ? scorer.score_tokens(tokens, offsets) : scorer.score(values, offsets);
    if (i > 0) times.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
  }
  std::sort(times.begin(), times.end());
  const double seconds = times[times.size() / 2];
  const double rate = static_cast<double>(steps) / seconds;
  const double gflops = 1e-9 * rate * flops_of_step(info);
  if (o.json) {
    print_json_line(nlohmann::ordered_json{{"model", o.model},
                                           {"batch", o.batch},
                                           {"length", o.length},
                                           {"threads", o.threads},
                                           {"seconds", seconds},
                                           {"fastest", times.front()},
                                           {"steps_per_second", rate},
                                           {"useful_gflops", gflops}});
  } else {
    fmt::print("{} × {} steps in {:.1f} ms (fastest {:.1f}): {} steps/s, {:.1f} useful GFLOP/s\n",
               o.batch, grouped(o.length), 1e3 * seconds, 1e3 * times.front(),
               grouped(static_cast<int64_t>(rate)), gflops);
  }
  return 0;
}

}  // namespace

void add_bench_score(CLI::App& bench, Action& action) {
  auto o = std::make_shared<BenchScoreOptions>();
  auto* command =
      bench.add_subcommand("score", "Whole sequences of noise through an exported model");
  command->add_option("model", o->model, "model file, as rotrnn export writes it")->required();
  command->add_option("--batch", o->batch, "sequences, or pairs")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 20));
  command->add_option("--length", o->length, "steps of each")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 28));
  command->add_option("--threads", o->threads, "0: as many as the process may use")
      ->check(CLI::Range(0, 4096));
  command->add_option("--repeats", o->repeats, "times to measure, after one to warm up")
      ->capture_default_str()
      ->check(CLI::Range(1, 100000));
  command->add_flag("--json", o->json, "one line of JSON");
  command->callback([o, &action] { action = [o] { return run_bench_score(*o); }; });
}

}  // namespace rotrnn::cli
