#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <stdexcept>

#include "rotrnn/cli/command.h"
#include "rotrnn/cli/output/interrupt.h"
#include "rotrnn/cli/output/progress.h"
#include "rotrnn/cli/output/score.h"
#include "rotrnn/cli/output/text.h"
#include "rotrnn/io/folder_lock.h"
#include "rotrnn/training/checkpoint/run_folder.h"
#include "rotrnn/training/trainer.h"

namespace rotrnn::cli {
namespace {

namespace fs = std::filesystem;

struct TrainOptions {
  std::string config, out, init_from;
  std::vector<std::string> settings;
  bool resume = false, overwrite = false, quiet = false, unbound = false;
  int64_t threads = -1;
  double timeout = 60;
  std::string kernels;
};

bool holds_a_run(const fs::path& folder) {
  return fs::exists(folder / "config.toml") || can_resume(folder);
}

// runs/NAME, or the first of runs/NAME-2, -3, … that is free.
fs::path free_folder(const std::string& config) {
  const std::string name = config.empty() ? "quickstart" : fs::path(config).stem().string();
  fs::path folder = fs::path("runs") / name;
  const auto is_free = [&] {
    return !fs::exists(folder) || (fs::is_directory(folder) && fs::is_empty(folder));
  };
  for (int i = 2; !is_free(); ++i) folder = fs::path("runs") / fmt::format("{}-{}", name, i);
  return folder;
}

// What may change when a run goes on: everything else would make it another run.
bool may_change(const std::string& key) {
  for (const char* allowed :
       {"training.steps", "training.threads", "training.log_every", "training.evaluate_every",
        "training.checkpoint_every", "training.keep_checkpoint_every", "training.non_finite_limit",
        "training.tensorboard", "training.kernels", "training.memory", "task.path",
        "task.train_path", "task.validation_path", "task.test_path", "task.cache",
        "task.memory_mb"}) {
    if (key == allowed) return true;
  }
  return false;
}

Config read_config(const TrainOptions& options) {
  return options.config.empty() ? default_config(options.settings)
                                : load_config(options.config, options.settings);
}

Config resumed_config(const TrainOptions& options, const fs::path& out) {
  const Config saved = find_resumable(out, Parts::all).checkpoint.header.config;
  Config config = saved;
  if (!options.config.empty()) {
    config = load_config(options.config, options.settings);
  } else {
    for (const std::string& setting : options.settings) apply_setting(config, setting);
    check(config);
  }
  for (const std::string& key : differences(saved, config)) {
    if (!may_change(key)) {
      throw std::invalid_argument(
          fmt::format("{} differs from what {} was trained with; a run can only be resumed with "
                      "the same settings. Start another run, with --init-from {} if you want its "
                      "weights",
                      key, out.string(), shell_word(out.string())));
    }
  }
  return config;
}

// Before anything is read for long, or replaced.
void check_start(const TrainOptions& options) {
  if (options.resume && options.overwrite) {
    throw std::invalid_argument(
        "--resume goes on with a run and --overwrite replaces it; give one");
  }
  if (options.init_from.empty()) return;
  if (options.resume && !options.out.empty() && can_resume(options.out)) {
    throw std::invalid_argument(
        fmt::format("--resume goes on with the weights of {}; leave out --init-from", options.out));
  }
  const fs::path from = find_checkpoint(options.init_from, Which::best);
  const auto inside =
      fs::weakly_canonical(from).lexically_relative(fs::weakly_canonical(options.out));
  if (options.overwrite && !options.out.empty() && !inside.empty() && *inside.begin() != "..") {
    throw std::invalid_argument(
        fmt::format("--overwrite would remove {}, which --init-from needs; choose another --out",
                    from.string()));
  }
}

TrainRequest make_request(const TrainOptions& options) {
  check_start(options);
  TrainRequest request;
  request.out = options.out;
  request.init_from = options.init_from;
  if (options.resume) {
    if (options.out.empty()) {
      throw std::invalid_argument("--resume needs --out RUN, the run folder to continue");
    }
    if (!holds_a_run(options.out)) {
      throw std::runtime_error(fmt::format("{}: there is no run to resume in it", options.out));
    }
    request.resume = can_resume(request.out);
    if (request.resume) {
      request.config = resumed_config(options, request.out);
    } else if (options.config.empty()) {
      // Killed before the first checkpoint: the same run from its beginning.
      request.config = load_config(request.out / "config.toml", options.settings);
    } else {
      request.config = read_config(options);
    }
  } else {
    request.config = read_config(options);
    if (request.out.empty()) request.out = free_folder(options.config);
    if (fs::exists(request.out) && !fs::is_directory(request.out)) {
      throw std::invalid_argument(
          fmt::format("--out {}: there is a file of that name", request.out.string()));
    }
    if (holds_a_run(request.out)) {
      if (!options.overwrite) {
        throw std::invalid_argument(
            fmt::format("{0} holds a run already; continue it with --resume, replace it with "
                        "--overwrite, or choose another --out",
                        request.out.string()));
      }
      const FolderLock lock(request.out);
      clear_run(request.out);
    }
  }
  if (options.threads >= 0) request.config.training.threads = options.threads;
  if (!options.kernels.empty())
    apply_setting(request.config, "training.kernels=" + options.kernels);
  return request;
}

void print_outcome(const TrainRequest& request, const TrainOutcome& outcome) {
  const std::string run = shell_word(request.out.string());
  if (!outcome.finished) {
    fmt::print("stopped at step {} and saved; continue with\n  {} train --resume --out {}\n",
               outcome.step, program(), run);
    return;
  }
  const Scores& test = outcome.test;
  fmt::print("test {}{}\n", score_text(test),
             test.classes ? fmt::format(" (majority class \"{}\": {})",
                                        outcome.classes.at(outcome.majority.label),
                                        percent(outcome.majority.share))
                          : "");
  fmt::print("weights of step {}, validation {}; {} parameters; {}\n", outcome.best_step,
             test.classes ? "accuracy " + percent(outcome.best_score)
                          : fmt::format("loss {:.4f}", -outcome.best_score),
             grouped(outcome.parameters), duration(outcome.seconds));
  if (outcome.skipped > 0) {
    fmt::print(
        "{} of {} steps were skipped, since their loss or gradient was not finite; "
        "metrics.jsonl lists them\n",
        grouped(outcome.skipped), grouped(outcome.step));
  }
  fmt::print("\nnext:\n");
  fmt::print("  {} eval {}\n", program(), run);
  const TaskOptions& task = request.config.task;
  const SampleInput sample = sample_input(task);
  if (sample.file) {
    fmt::print("  {} predict {} {}\n", program(), run, shell_word(sample.text));
  } else if (!sample.text.empty()) {
    fmt::print("  echo {} | {} predict {}\n", shell_word(sample.text), program(), run);
  }
  fmt::print("  {} info {}\n", program(), run);
}

// The request of rank 0, from its files and options, for all ranks.
TrainRequest shared_request(const TrainOptions& options, Group& group) {
  if (group.alone()) return make_request(options);
  TrainRequest request;
  if (group.first()) request = make_request(options);
  request.config = parse_config(group.broadcast(to_toml(request.config)), "the config of rank 0");
  request.out = group.broadcast(request.out.string());
  group.broadcast(&request.resume, sizeof request.resume);
  if (options.threads >= 0) request.config.training.threads = options.threads;
  return request;
}

int train_in(const TrainOptions& options, Group& group) {
  TrainRequest request = shared_request(options, group);
  request.group = &group;
  Progress progress(options.quiet);
  TrainObserver observer;
  observer.message = [&](const std::string& text) { progress.message(text); };
  observer.warning = [&](const std::string& text) { progress.warning(text); };
  observer.step = [&](const StepReport& report) { progress.step(report); };
  observer.evaluation = [&](const EvaluationReport& report) { progress.evaluation(report); };
  observer.stop = interrupted;
  catch_interrupts(/*announce=*/true);
  const TrainOutcome outcome = train(request, observer);
  progress.finish();
  if (group.first()) print_outcome(request, outcome);
  return outcome.finished ? 0 : 1;
}

int run_train(const TrainOptions& options) {
  Group group(find_rendezvous(environment()), options.timeout, !options.unbound);
  try {
    return train_in(options, group);
  } catch (const std::exception& error) {
    group.fail(error.what());
    throw;
  }
}

}  // namespace

void add_train(CLI::App& app, Action& action) {
  auto options = std::make_shared<TrainOptions>();
  auto* command = app.add_subcommand("train", "Train a network from a config");
  command->add_option("config", options->config,
                      "TOML file, such as configs/lra/listops.toml; none: the quick start");
  command->add_option(
      "--out", options->out,
      "run folder (default: runs/NAME-OF-CONFIG, or runs/NAME-2, … when that is taken)");
  command->add_option("--set", options->settings, "change a key: --set training.steps=100")
      ->take_all()
      ->allow_extra_args(false);
  command->add_flag("--resume", options->resume, "continue the run in --out where it stopped");
  command->add_option("--init-from", options->init_from, "start from the weights of another run");
  command->add_flag("--overwrite", options->overwrite, "replace the run that is in --out");
  command->add_option("--threads", options->threads, "same as --set training.threads=K")
      ->check(CLI::Range(0, 4096));
  command->add_option("--kernels", options->kernels, "same as --set training.kernels=NAME")
      ->check(CLI::IsMember(names_of<Kernels>()));
  command
      ->add_option("--timeout", options->timeout,
                   "seconds that a rank may be silent before the others give it up")
      ->check(CLI::Range(1.0, 86400.0))
      ->capture_default_str();
  command->add_flag("--no-bind", options->unbound,
                    "let the ranks of a machine use all its CPUs instead of a part each");
  command->add_flag("--quiet", options->quiet, "show the result only");
  command->footer(
      "Several processes train together when RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT are\n"
      "set, as `rotrnn launch` and torchrun do, or the variables of mpirun or srun. A batch is\n"
      "that of all ranks together. docs/scaling.md");
  command->callback([options, &action] { action = [options] { return run_train(*options); }; });
}

}  // namespace rotrnn::cli
