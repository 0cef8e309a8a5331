#include "rotrnn/training/evaluate/norms.h"

#include <fmt/format.h>

#include <memory>
#include <stdexcept>

#include "rotrnn/cli/command.h"
#include "rotrnn/cli/output/interrupt.h"
#include "rotrnn/cli/output/progress.h"
#include "rotrnn/cli/output/text.h"
#include "rotrnn/io/atomic_file.h"
#include "rotrnn/training/checkpoint/run_folder.h"
#include "rotrnn/training/trainer.h"

namespace rotrnn::cli {
namespace {

namespace fs = std::filesystem;

struct NormsOptions {
  std::string config, out = "runs/norms", layers = "rotrnn,lru";
  std::vector<std::string> settings;
  int64_t depth = 8, seeds = 5, threads = -1;
  bool paper = false, json = false, quiet = false;
};

NormsPlan make_plan(const NormsOptions& o) {
  NormsPlan plan;
  if (o.config.empty()) {
    plan.config = norms_config(o.paper, o.settings);
  } else {
    if (o.paper) throw std::invalid_argument("--paper has its own settings; leave out the config");
    plan.config = load_config(o.config, o.settings);
  }
  if (o.threads >= 0) plan.config.training.threads = o.threads;
  plan.layers = split_list(o.layers);
  plan.depth = o.depth;
  plan.seeds = o.seeds;
  plan.out = o.out;
  return plan;
}

// A finished cell is not run again, a stopped one goes on; false: stopped.
bool run_cell(const NormsCell& cell, const NormsOptions& o, const std::string& name) {
  Progress progress(o.quiet);
  TrainRequest request;
  request.config = cell.config;
  request.out = cell.run;
  if (can_resume(cell.run)) {
    const CheckpointHeader header = find_resumable(cell.run, Parts::header).checkpoint.header;
    const auto changed = differences(header.config, cell.config);
    if (!changed.empty()) {
      throw std::invalid_argument(
          fmt::format("{} was trained with another {}; choose another --out, or remove it",
                      cell.run.string(), changed.front()));
    }
    if (header.state.step >= cell.config.training.steps) {
      progress.message(name + ": done before");
      return true;
    }
    request.resume = true;
  }
  progress.message(name);
  TrainObserver observer;
  observer.warning = [&](const std::string& text) { progress.warning(text); };
  observer.step = [&](const StepReport& report) { progress.step(report); };
  observer.stop = interrupted;
  const TrainOutcome outcome = train(request, observer);
  progress.finish();
  return outcome.finished;
}

void print_summary(const NormsResult& result) {
  std::vector<std::vector<std::string>> rows{{"layer", "deep: mean", "per head", "CV over training",
                                              "CV over blocks", "one block: mean",
                                              "CV over training", "CV over seeds"}};
  for (const NormsSummary& s : result.summaries) {
    auto number = [](double v) { return fmt::format("{:.3f}", v); };
    rows.push_back({s.layer, number(s.deep_mean), number(s.deep_head_mean), number(s.over_training),
                    number(s.over_layers), number(s.single_mean), number(s.single_over_training),
                    number(s.over_seeds)});
  }
  fmt::print("{}", table(rows, {1, 2, 3, 4, 5, 6, 7}));
}

std::string command_of(const NormsOptions& o) {
  std::string text = program() + " norms";
  if (!o.config.empty()) text += " " + shell_word(o.config);
  if (o.paper) text += " --paper";
  text += fmt::format(" --layers {} --depth {} --seeds {}", shell_word(o.layers), o.depth, o.seeds);
  for (const std::string& setting : o.settings) text += " --set " + shell_word(setting);
  return text;
}

int run_norms(const NormsOptions& o) {
  const NormsPlan plan = make_plan(o);
  const std::vector<NormsCell> cells = cells_of(plan);
  catch_interrupts(/*announce=*/true);
  for (size_t i = 0; i < cells.size(); ++i) {
    const NormsCell& cell = cells[i];
    const std::string name = fmt::format(
        "[{}/{}] {}, {}, seed {}", i + 1, cells.size(), cell.layer,
        cell.deep ? fmt::format("{} blocks", plan.depth) : "one block", cell.config.training.seed);
    if (!run_cell(cell, o, name)) {
      fmt::print("stopped and saved; the same command goes on where it was\n");
      return 1;
    }
  }
  const NormsResult result = collect_norms(cells);
  const std::string command = command_of(o), json = norms_json(result, command);
  write_file_atomically(plan.out / "norms.json", json);
  write_file_atomically(plan.out / "norms.svg",
                        to_svg(norms_charts(result), plan.layers.size() + 1));
  write_file_atomically(plan.out / "norms.html", norms_html(result, command));
  if (o.json) {
    fmt::print("{}", json);
    return 0;
  }
  print_summary(result);
  fmt::print("\n{0}/norms.html shows the figure; norms.svg and norms.json are beside it\n", o.out);
  return 0;
}

}  // namespace

void add_norms(CLI::App& app, Action& action) {
  auto o = std::make_shared<NormsOptions>();
  auto* command = app.add_subcommand(
      "norms", "Measure the hidden state's norm over training, layer against layer");
  command->add_option("config", o->config, "TOML file; none: ListOps as in the paper, shortened");
  command->add_option("--layers", o->layers, "layers to compare")->capture_default_str();
  command->add_option("--depth", o->depth, "blocks of the deep network (figure a)")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000));
  command->add_option("--seeds", o->seeds, "runs of the network of one block (figure b)")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000));
  command->add_flag("--paper", o->paper, "the paper's full setting: 80,000 steps of batch 32");
  command->add_option("--out", o->out, "folder for runs and figures")->capture_default_str();
  command->add_option("--set", o->settings, "change a key: --set training.steps=100")
      ->take_all()
      ->allow_extra_args(false);
  command->add_option("--threads", o->threads, "same as --set training.threads=K")
      ->check(CLI::Range(0, 4096));
  command->add_flag("--json", o->json, "print the numbers as JSON");
  command->add_flag("--quiet", o->quiet, "show the result only");
  command->callback([o, &action] { action = [o] { return run_norms(*o); }; });
}

}  // namespace rotrnn::cli
