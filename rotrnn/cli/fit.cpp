#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "rotrnn/base/message.h"
#include "rotrnn/base/text/number.h"
#include "rotrnn/cli/command.h"
#include "rotrnn/cli/output/json_line.h"
#include "rotrnn/cli/output/score.h"
#include "rotrnn/cli/output/text.h"
#include "rotrnn/data/guess/guess.h"
#include "rotrnn/io/folder_lock.h"
#include "rotrnn/training/checkpoint/run_folder.h"
#include "rotrnn/training/fit/fit_run.h"

namespace rotrnn::cli {
namespace {

namespace fs = std::filesystem;

struct FitCommand {
  std::vector<std::string> data, settings;
  std::string out, task, input = "automatic";
  int64_t states = 0, seed = -1, threads = -1;
  bool json = false, overwrite = false, unbalanced = false, prefixes = false, quiet = false;
};

// One path, or the files of the splits.
void set_paths(const std::vector<std::string>& data, TaskOptions& task) {
  if (data.size() == 1) return;
  task.path.clear();
  task.train_path = data.front();
  task.test_path = data.back();
  if (data.size() == 3) task.validation_path = data[1];
}

Config config_of(const FitCommand& o) {
  if (fs::path(o.data.front()).extension() == ".toml") {
    if (o.data.size() > 1) {
      throw std::invalid_argument("fit: a config names its data itself; give it alone");
    }
    return load_config(o.data.front(), o.settings);
  }
  Config config;
  std::vector<std::string> task_settings;
  for (const std::string& setting : o.settings) {
    if (setting.starts_with("task.")) apply_setting(config, setting);
  }
  if (o.task.empty()) {
    config.task = guess_task(o.data.front(), "", config.task).task;
  } else {
    config.task.name = o.task;
    config.task.path = o.data.front();
  }
  set_paths(o.data, config.task);
  for (const std::string& setting : o.settings) apply_setting(config, setting);
  check(config);
  return config;
}

std::string data_name(const std::string& data) {
  fs::path whole = fs::absolute(data).lexically_normal();
  if (!whole.has_filename()) whole = whole.parent_path();
  const std::string name = whole.filename().string();
  return fs::is_directory(whole) ? name : name.substr(0, name.find('.', 1));
}

// --out, or the first of runs/NAME-fit, -2, … that is free.
fs::path run_folder(const FitCommand& o) {
  if (o.out.empty()) {
    const std::string name = data_name(o.data.front()) + "-fit";
    fs::path folder = fs::path("runs") / name;
    for (int i = 2; fs::exists(folder) && !fs::is_empty(folder); ++i) {
      folder = fs::path("runs") / fmt::format("{}-{}", name, i);
    }
    return folder;
  }
  if (fs::exists(o.out) && !fs::is_directory(o.out)) {
    throw std::invalid_argument(fmt::format("--out {}: there is a file of that name", o.out));
  }
  if (fs::exists(fs::path(o.out) / "config.toml") && !o.overwrite) {
    throw std::invalid_argument(fmt::format(
        "{} holds a run already; replace it with --overwrite, or choose another --out", o.out));
  }
  return o.out;
}

nlohmann::ordered_json finite(double value) {
  return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json(nullptr);
}

void print_fit_json(const FitOutcome& r, const fs::path& out) {
  nlohmann::ordered_json line{{"run", out.string()}};
  const bool classes = !r.estimate.confusion.empty();
  const auto add = [&](const char* name, const Scores& s) {
    const std::string prefix = std::string(name) + "_";
    if (classes) {
      line[prefix + "accuracy"] = s.examples > 0 ? finite(s.accuracy) : nullptr;
    } else {
      line[prefix + "rmse"] = s.examples > 0 ? finite(std::sqrt(s.mse)) : nullptr;
      line[prefix + "mae"] = s.examples > 0 ? finite(s.mae) : nullptr;
    }
  };
  add("test", r.test);
  add("validation", r.validation);
  line["seconds"] = r.seconds;
  line["fit_seconds"] = r.fit_seconds;
  line["estimate"] = fit::estimate_name(r.estimate.kind);
  if (classes) {
    line["estimate_accuracy"] = r.estimate.accuracy.value;
    line["estimate_error"] = finite(r.estimate.accuracy.error);
  }
  line["estimate_loss"] = r.estimate.loss.value;
  line["input"] = r.trials.front().name;
  line["penalty"] = r.penalty;
  line["temperature"] = r.temperature;
  line["train"] = r.train;
  line["parameters"] = r.parameters;
  line["memory_mb"] = r.peak_memory_mb;
  nlohmann::ordered_json early = nlohmann::ordered_json::array();
  for (const EarlyAnswers& e : r.early) {
    early.push_back(
        classes ? nlohmann::ordered_json{{"share", e.share},
                                         {"accuracy", e.accuracy.value},
                                         {"calibration", e.calibration}}
                : nlohmann::ordered_json{{"share", e.share}, {"mean_square", e.mean_square}});
  }
  line["early"] = early;
  print_json_line(line);
}

// "87.4 %, ± 2.1 %"; without an error where there is none.
std::string with_error(const fit::Mean& m) {
  return percent(m.value) + (std::isfinite(m.error) ? " ± " + percent(m.error) : "");
}

std::string estimate_text(const fit::Estimate& e) {
  return e.confusion.empty()
             ? fmt::format("mean square {:.4f} of the targets' variance", e.loss.value)
             : fmt::format("accuracy {}, log loss {:.3f}", with_error(e.accuracy), e.loss.value);
}

void print_early(const FitOutcome& r) {
  std::vector<std::vector<std::string>> rows{{"of the series"}};
  const bool classes = !r.estimate.confusion.empty();
  rows[0].push_back(classes ? "accuracy" : "mean square");
  if (classes) rows[0].push_back("calibration error");
  for (const EarlyAnswers& e : r.early) {
    rows.push_back({percent(e.share)});
    rows.back().push_back(classes ? with_error(e.accuracy) : fmt::format("{:.4f}", e.mean_square));
    if (classes) rows.back().push_back(percent(e.calibration));
  }
  fmt::print("\n{}", table(rows, {0, 1, 2}));
}

void print_fit(const FitOutcome& r, const fs::path& out) {
  for (const FitTrial& t : r.trials) {
    fmt::print("{:8} {}: {} ({:.2f} s)\n", t.name, fit::estimate_name(t.estimate.kind),
               estimate_text(t.estimate), t.seconds);
  }
  if (r.validation.examples > 0) {
    fmt::print("validation {} ({} examples)\n", score_text(r.validation),
               grouped(r.validation.examples));
  }
  if (r.test.examples > 0) {
    fmt::print("test {}{} ({} examples)\n", score_text(r.test),
               r.test.classes
                   ? fmt::format(" ± {} (majority class: {})",
                                 percent(std::sqrt(r.test.accuracy * (1 - r.test.accuracy) /
                                                   static_cast<double>(r.test.examples))),
                                 percent(r.majority.share))
                   : "",
               grouped(r.test.examples));
    if (r.test.classes) fmt::print("\n{}", class_table(r.test, r.classes));
    print_early(r);
  }
  fmt::print("\nfitted in {:.2f} s, {:.2f} s in all; {} numbers\n", r.fit_seconds, r.seconds,
             grouped(r.parameters));
  const std::string run = shell_word(out.string());
  fmt::print(
      "\nnext:\n  {0} eval {1}\n  {0} export {1} --out model.safetensors\n  {0} report {1}\n",
      program(), run);
}

int run_fit(const FitCommand& o) {
  FitRequest request;
  request.config = config_of(o);
  request.out = run_folder(o);
  if (o.states > 0) request.config.model.features.states = (o.states + 15) / 16 * 16;
  if (o.seed >= 0) request.config.training.seed = o.seed;
  if (o.threads >= 0) request.config.training.threads = o.threads;
  request.input = o.input == "samples" ? FitInput::samples
                  : o.input == "bands" ? FitInput::bands
                                       : FitInput::automatic;
  request.balance = !o.unbalanced;
  request.prefixes = o.prefixes;
  if (!o.quiet && !o.json) {
    request.message = [](const std::string& text) { fmt::print("{}\n", text); };
  }
  const FitOutcome result = fit_run(request);
  o.json ? print_fit_json(result, request.out) : print_fit(result, request.out);
  return 0;
}

}  // namespace

void add_fit(CLI::App& app, Action& action) {
  auto o = std::make_shared<FitCommand>();
  auto* command = app.add_subcommand("fit", "Fit a model to series in seconds, without training");
  command
      ->add_option("data", o->data,
                   "file, folder or archive, as for init; or train and test; or train, validation "
                   "and test; or a config")
      ->required()
      ->expected(1, 3);
  command->add_option("--out", o->out, "run folder (default: runs/NAME-OF-DATA-fit)");
  command->add_option("--states", o->states, "rotations in the bank (default: 1024)")
      ->check(CLI::Range(1, 1 << 16));
  command->add_option("--seed", o->seed, "of the bank (default: 0)")->check(CLI::NonNegativeNumber);
  command
      ->add_option("--input", o->input,
                   "what the bank reads: samples, bands of a front end, or what the estimate "
                   "prefers (automatic)")
      ->check(CLI::IsMember({"automatic", "samples", "bands"}));
  command->add_flag("--unbalanced", o->unbalanced,
                    "classes count by their examples, however uneven they are");
  command->add_flag(
      "--prefixes", o->prefixes,
      "learn from the first 10, 25 and 50 % of each series too: better early answers");
  command->add_option("--task", o->task, "what the data are, as data list names them");
  command->add_option("--set", o->settings, "choose a key yourself: --set task.label_column=kind")
      ->take_all()
      ->allow_extra_args(false);
  command->add_option("--threads", o->threads, "0: as many as the process may use")
      ->check(CLI::Range(0, 4096));
  command->add_flag("--overwrite", o->overwrite, "replace the run that is in --out");
  command->add_flag("--json", o->json, "one line of JSON");
  command->add_flag("--quiet", o->quiet, "show the result only");
  command->footer(
      "A bank of fixed random rotations, features that count, and a ridge regression in closed\n"
      "form. With groups (task.group_column, task.group_pattern) whatever is chosen is chosen by\n"
      "leaving whole groups out. docs/fit.md");
  command->callback([o, &action] { action = [o] { return run_fit(*o); }; });
}

}  // namespace rotrnn::cli
