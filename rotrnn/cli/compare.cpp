#include "rotrnn/training/compare/compare.h"

#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "rotrnn/base/message.h"
#include "rotrnn/cli/command.h"
#include "rotrnn/cli/output/interrupt.h"
#include "rotrnn/cli/output/json_line.h"
#include "rotrnn/cli/output/progress.h"
#include "rotrnn/cli/output/text.h"
#include "rotrnn/io/atomic_file.h"
#include "rotrnn/layers/registry.h"

namespace rotrnn::cli {
namespace {

namespace fs = std::filesystem;
using Rows = std::vector<std::vector<std::string>>;

struct CompareOptions {
  std::string config, layers, preset, out;
  std::vector<std::string> settings;
  int64_t seeds = 3, steps = 0, threads = -1;
  double minutes = 0;
  bool no_match = false, json = false, quiet = false, list_presets = false;
};

// "rotrnn,lru" as variants that name the layer and change nothing else.
std::vector<Variant> layer_variants(const std::string& text) {
  std::vector<Variant> out;
  try {
    for (const std::string& name : split_list(text)) {
      layer_summary(name);
      out.push_back({name, {"model.layer=" + name}});
    }
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(fmt::format("--layers {}: {}", text, error.what()));
  }
  return out;
}

// The command that starts, or continues, this comparison.
std::string command_of(const CompareOptions& o, const std::string& out) {
  std::string text = program() + " compare";
  if (!o.config.empty()) text += " " + shell_word(o.config);
  text +=
      o.preset.empty() ? " --layers " + shell_word(o.layers) : " --preset " + shell_word(o.preset);
  text += fmt::format(" --seeds {}", o.seeds);
  if (o.minutes > 0) text += fmt::format(" --budget-minutes {}", o.minutes);
  if (o.steps > 0) text += fmt::format(" --steps {}", o.steps);
  if (o.threads >= 0) text += fmt::format(" --threads {}", o.threads);
  if (o.no_match) text += " --no-match";
  for (const std::string& setting : o.settings) text += " --set " + shell_word(setting);
  return text + " --out " + shell_word(out);
}

CompareRequest make_request(const CompareOptions& o) {
  if (std::isnan(o.minutes)) throw std::invalid_argument("--budget-minutes: write a number");
  CompareRequest request;
  request.base = o.config.empty() ? default_config(o.settings) : load_config(o.config, o.settings);
  if (o.steps > 0) request.base.training.steps = o.steps;
  if (o.threads >= 0) request.base.training.threads = o.threads;
  if (o.preset.empty()) {
    request.variants = layer_variants(o.layers);
  } else {
    const Preset& preset = find_preset(o.preset);
    request.variants = preset.variants;
    request.skip_unfit = preset.skip_unfit;
    if (request.base.model.layer != "rotrnn") {
      throw std::invalid_argument(
          fmt::format("--preset {} varies RotRNN, but model.layer is \"{}\"; add --set "
                      "model.layer=rotrnn",
                      o.preset, request.base.model.layer));
    }
  }
  request.seeds = o.seeds;
  request.minutes = o.minutes;
  request.match = !o.no_match;
  const std::string name = o.config.empty() ? "quickstart" : fs::path(o.config).stem().string();
  request.out = !o.out.empty()
                    ? fs::path(o.out)
                    : fs::path("runs") / fmt::format("compare-{}{}{}", name,
                                                     o.preset.empty() ? "" : "-", o.preset);
  if (fs::exists(request.out) && !fs::is_directory(request.out)) {
    throw std::invalid_argument(
        fmt::format("--out {}: there is a file of that name", request.out.string()));
  }
  request.command = command_of(o, request.out.string());
  return request;
}

std::string accuracy_text(const Spread& s) {
  if (s.count == 0) return "–";
  if (s.count == 1) return fmt::format("{:.2f} %", 100 * s.mean);
  return fmt::format("{:.2f} ± {:.2f} %", 100 * s.mean, 100 * s.deviation);
}

Rows rows_of(const Comparison& comparison) {
  Rows rows{{"variant", "test accuracy", "chance", "seeds", "parameters", "state", "steps",
             "tokens/s", "memory", "min/cell"}};
  for (const ComparedVariant& v : comparison.variants) {
    const CompareRow row = row_of(v);
    const bool any = row.accuracy.count > 0;
    auto shown = [&](const std::string& text) { return any ? text : std::string("–"); };
    rows.push_back({v.variant.name, accuracy_text(row.accuracy), shown(percent(row.majority)),
                    fmt::format("{}/{}", row.accuracy.count, v.cells.size()), grouped(v.parameters),
                    grouped(v.config.model.state), shown(grouped(std::llround(row.steps))),
                    shown(grouped(std::llround(row.tokens_per_second))),
                    shown(fmt::format("{:.0f} MB", row.peak_memory_mb)),
                    shown(fmt::format("{:.2f}", row.minutes))});
  }
  return rows;
}

std::string budget_text(const CompareRequest& request) {
  return request.minutes > 0 ? fmt::format("{} minutes", request.minutes)
                             : fmt::format("{} steps", grouped(request.base.training.steps));
}

std::string markdown(const Comparison& comparison) {
  const CompareRequest& request = comparison.request;
  std::string out =
      fmt::format("# Comparison on {}\n\n    {}\n\n", request.base.task.name, request.command);
  out += fmt::format(
      "{} for every variant and seed; test accuracy is the mean ± standard deviation "
      "over the seeds, each at\nits best validation accuracy{}.\n\n",
      budget_text(request), comparison.finished() ? "" : "; not all cells are finished");
  const Rows rows = rows_of(comparison);
  for (size_t i = 0; i < rows.size(); ++i) {
    out += fmt::format("| {} |\n", fmt::join(rows[i], " | "));
    if (i > 0) continue;
    out += "|---|";
    for (size_t j = 1; j < rows[i].size(); ++j) out += "---:|";
    out += "\n";
  }
  return out;
}

void print_compare_text(const Comparison& comparison) {
  fmt::print("{}: {} for every cell\n\n{}", comparison.request.base.task.name,
             budget_text(comparison.request),
             table(rows_of(comparison), {1, 2, 3, 4, 5, 6, 7, 8, 9}));
  for (const ComparedVariant& v : comparison.variants) {
    for (const Cell& cell : v.cells) {
      if (cell.state != CellState::failed) continue;
      fmt::print("\n{}, seed {} failed: {}\n", v.variant.name, cell.seed, cell.error);
    }
  }
  fmt::print("\n{} and compare.json hold this; every cell is a run folder:\n",
             (comparison.request.out / "compare.md").string());
  fmt::print("  {} eval {}\n", program(),
             shell_word(comparison.variants[0].cells[0].folder.string()));
}

int print_presets(bool json) {
  if (json) {
    nlohmann::ordered_json out = nlohmann::ordered_json::array();
    for (const Preset& preset : presets()) {
      nlohmann::ordered_json variants;
      for (const Variant& v : preset.variants) variants[v.name] = v.settings;
      out.push_back({{"name", preset.name}, {"summary", preset.summary}, {"variants", variants}});
    }
    print_json_line(out);
    return 0;
  }
  for (const Preset& preset : presets()) {
    fmt::print("{}: {}\n", preset.name, preset.summary);
    Rows rows;
    for (const Variant& v : preset.variants) {
      rows.push_back({"", v.name, fmt::format("{}", fmt::join(v.settings, " "))});
    }
    fmt::print("{}", table(rows));
  }
  return 0;
}

int run_compare(const CompareOptions& o) {
  if (o.list_presets) return print_presets(o.json);
  const CompareRequest request = make_request(o);
  const TaskTarget target = request.base.task.target;
  if (target == TaskTarget::value || target == TaskTarget::forecast) {
    throw std::invalid_argument(fmt::format(
        "compare: it compares accuracies, and task.target = \"{}\" has none; train the layers one "
        "by one and look at `eval`",
        name_of(target)));
  }
  Progress progress(o.quiet);
  CompareObserver observer;
  observer.message = [&](const std::string& text) { progress.message(text); };
  observer.train.warning = [&](const std::string& text) { progress.warning(text); };
  observer.train.step = [&](const StepReport& report) { progress.step(report); };
  observer.train.evaluation = [&](const EvaluationReport& r) { progress.evaluation(r); };
  observer.train.stop = interrupted;
  observer.changed = [&](const Comparison& comparison) {
    write_file_atomically(request.out / "compare.md", markdown(comparison));
  };
  catch_interrupts(/*announce=*/true);
  const Comparison comparison = compare(request, observer);
  progress.finish();
  if (o.json) {
    print_json_line(to_json(comparison));
  } else {
    print_compare_text(comparison);
  }
  if (comparison.finished()) return 0;
  if (interrupted()) {
    print_message("stopped and saved; continue with\n  {}\n", request.command);
  }
  return 1;
}

}  // namespace

void add_compare(CLI::App& app, Action& action) {
  auto o = std::make_shared<CompareOptions>();
  auto* command = app.add_subcommand(
      "compare", "Train layers or settings with equal budgets and tabulate them");
  command->add_option("config", o->config, "TOML file; none: the quick start");
  o->layers = fmt::format("{}", fmt::join(layer_names(), ","));
  auto* layers =
      command->add_option("--layers", o->layers, "the layers, the first as the yardstick")
          ->capture_default_str();
  command->add_option("--preset", o->preset, "a ready-made set of variants; see --presets")
      ->excludes(layers);
  command->add_flag("--presets", o->list_presets, "list the presets");
  command->add_option("--seeds", o->seeds, "runs of every variant")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{1}, int64_t{1000}));
  auto* steps = command->add_option("--steps", o->steps, "of every cell (default: the config's)")
                    ->check(CLI::Range(int64_t{1}, int64_t{1} << 40));
  command
      ->add_option("--budget-minutes", o->minutes,
                   "time of every cell instead; its steps follow from a short timing run")
      ->check(CLI::Range(0.001, 1e6))
      ->excludes(steps);
  command->add_flag("--no-match", o->no_match, "keep model.state instead of matching parameters");
  command->add_option("--out", o->out, "folder (default: runs/compare-NAME-OF-CONFIG)");
  command->add_option("--set", o->settings, "change a key: --set task.train=5000")
      ->take_all()
      ->allow_extra_args(false);
  command->add_option("--threads", o->threads, "same as --set training.threads=K")
      ->check(CLI::Range(0, 4096));
  command->add_flag("--json", o->json, "one line of JSON");
  command->add_flag("--quiet", o->quiet, "show the result only");
  command->callback([o, &action] { action = [o] { return run_compare(*o); }; });
}

}  // namespace rotrnn::cli
