#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <stdexcept>

#include "rotrnn/base/text/utf8.h"
#include "rotrnn/base/threads.h"
#include "rotrnn/cli/command.h"
#include "rotrnn/cli/output/interrupt.h"
#include "rotrnn/cli/output/text.h"
#include "rotrnn/data/guess/guess.h"
#include "rotrnn/io/atomic_file.h"
#include "rotrnn/training/init/suggest.h"
#include "rotrnn/training/trainer.h"

namespace rotrnn::cli {
namespace {

namespace fs = std::filesystem;

struct InitOptions {
  std::string data, out, task;
  std::vector<std::string> settings;
  double minutes = 0, measure = 10;
  bool force = false, print = false;
  int64_t threads = 0;
};

// The name of the data without its endings: "reviews.tar.gz" gives reviews.toml here.
fs::path default_out(const fs::path& data) {
  fs::path whole = fs::absolute(data).lexically_normal();
  if (!whole.has_filename()) whole = whole.parent_path();
  std::string name = whole.filename().string();
  if (!fs::is_directory(data)) name = name.substr(0, name.find('.', 1));
  return (name.empty() || name == "/" ? "data" : name) + ".toml";
}

void check_out(const InitOptions& o, const fs::path& out) {
  if (o.print) return;
  if (fs::is_directory(out)) {
    throw std::invalid_argument(
        fmt::format("--out {}: it is a folder; name a file in it, such as {}", out.string(),
                    (out / default_out(o.data)).string()));
  }
  check_free(out, o.force);
}

// Settings of the user go before what was guessed.
void apply_settings(const InitOptions& o, Config& config, std::vector<Reason>& reasons) {
  for (const std::string& setting : o.settings) {
    apply_setting(config, setting);
    const std::string key = setting.substr(0, setting.find('='));
    if (key == "training.batch") {  // one of the two counts
      config.training.batch_tokens = 0;
      std::erase_if(reasons, [](const Reason& r) { return r.key == "training.batch_tokens"; });
    }
    const auto found = std::find_if(reasons.begin(), reasons.end(),
                                    [&](const Reason& reason) { return reason.key == key; });
    if (found != reasons.end()) {
      found->why = "as given";
    } else {
      const auto same_section = [&](const Reason& r) {
        return r.key.substr(0, r.key.rfind('.')) == key.substr(0, key.rfind('.'));
      };
      const auto last = std::find_if(reasons.rbegin(), reasons.rend(), same_section);
      reasons.insert(last == reasons.rend() ? reasons.end() : last.base(), {key, "as given"});
    }
  }
}

Guess make_guess(const InitOptions& o) {
  Guess guess;
  InitOptions task_only = o;
  std::erase_if(task_only.settings, [](const std::string& s) { return !s.starts_with("task."); });
  if (!o.task.empty() && !task_only.settings.empty()) {
    // A user who names the kind and its settings knows the data better.
    guess.task.name = o.task;
    guess.task.path = o.data;
    guess.reasons = {{"task.name", "as given"},
                     {"task.path", "relative to the folder where the program is started"}};
  } else {
    Config given;
    for (const std::string& setting : task_only.settings) apply_setting(given, setting);
    guess = guess_task(o.data, o.task, given.task);
  }
  Config config;
  config.task = guess.task;
  apply_settings(task_only, config, guess.reasons);
  guess.task = config.task;
  return guess;
}

// Few held-out examples measure little: a fifth of a small set.
bool hold_out_more(const TaskData& data, Guess& guess) {
  if (data.train.size() < 60 || data.train.size() > 1000) return false;
  const auto by_chance = [](const Examples& examples) {
    return examples.size() > 0 && examples.record(0).split == Split::any;
  };
  const auto set = [&](const char* key, double TaskOptions::*share, const Examples& examples) {
    if (!by_chance(examples) || examples.size() >= 30) return false;
    if (guess.task.*share != TaskOptions{}.*share) return false;
    guess.task.*share = 0.2;
    guess.reasons.push_back({key, "held out of a small set: fewer would measure little"});
    return true;
  };
  const bool validation =
      set("task.validation_share", &TaskOptions::validation_share, data.validation);
  const bool test = set("task.test_share", &TaskOptions::test_share, data.test);
  return validation || test;
}

class Teller {
 public:
  explicit Teller(bool print) : out_(print ? stderr : stdout) {}
  void operator()(const std::string& line) const {
    fmt::print(out_, "{}\n", line);
    std::fflush(out_);
  }

 private:
  std::FILE* out_;  // standard output is the config itself with --print
};

// Reads the data as training would.
DataFacts read_facts(const InitOptions& o, Guess& guess, const Teller& say) {
  const int threads = o.threads > 0 ? static_cast<int>(o.threads) : kernels::available_threads();
  const TaskData first = load_task(guess.task, threads);
  for (const std::string& message : first.messages) say(message);
  DataFacts facts = facts_of(guess.task, first);
  if (!hold_out_more(first, guess) && !cut_into_windows(guess, facts)) return facts;
  return facts_of(guess.task, load_task(guess.task, threads));
}

std::vector<std::string> header_of(const InitOptions& o, const DataFacts& facts,
                                   const Suggestion& suggestion) {
  std::vector<std::string> lines{
      fmt::format("A config for {}, written by rotrnn init. Change what you like; every key is in "
                  "docs/config.md.",
                  o.data),
      ""};
  for (const std::string& line : describe(facts)) lines.push_back(line);
  if (suggestion.seconds > 0) {
    lines.push_back(fmt::format("training takes about {} on the machine it was written on",
                                duration(suggestion.seconds)));
  }
  return lines;
}

// Times a few steps and chooses their number. False: the user stopped it.
bool measure(const InitOptions& o, const DataFacts& facts, Suggestion& suggestion) {
  catch_interrupts();
  Config config = suggestion.config;
  if (o.threads > 0) config.training.threads = o.threads;
  const RunTiming timing = time_run(config, o.measure, interrupted);
  if (timing.steps == 0) return false;
  std::vector<std::string> fixed;
  for (const std::string& setting : o.settings)
    fixed.push_back(setting.substr(0, setting.find('=')));
  fit_time(suggestion, facts, {timing.setup, timing.step, timing.validation, timing.test},
           o.minutes, fixed);
  return true;
}

int init(const InitOptions& o) {
  const fs::path out = o.out.empty() ? default_out(o.data) : fs::path(o.out);
  check_out(o, out);
  if (find_not_utf8(o.data) != std::string::npos) {
    throw std::invalid_argument(fmt::format(
        "{}: the name is not UTF-8, as a config that holds it must be; rename it", o.data));
  }
  if (o.minutes > 0 && o.measure <= 0) {
    throw std::invalid_argument("--minutes needs a measurement; leave out --measure 0");
  }
  Config any;
  for (const std::string& setting : o.settings) apply_setting(any, setting);
  const Teller say(o.print);
  Guess guess = make_guess(o);
  const DataFacts facts = read_facts(o, guess, say);
  say(fmt::format("{}: {} ({})", o.data, guess.task.name, guess.reasons.front().why));
  for (const std::string& line : describe(facts)) say("  " + line);

  Suggestion suggestion = suggest(guess, facts);
  apply_settings(o, suggestion.config, suggestion.reasons);
  check(suggestion.config);
  if (o.measure > 0) {
    say(fmt::format("measuring for {:g} seconds …", o.measure));
    if (!measure(o, facts, suggestion)) {
      say("stopped; nothing was written");
      return 1;
    }
  }
  const std::string text = to_commented_toml(suggestion, header_of(o, facts, suggestion));
  check(parse_config(text, out.string()));

  const ModelOptions& m = suggestion.config.model;
  const TrainingOptions& t = suggestion.config.training;
  if (m.frontend.used()) {
    const DataShape& shape = facts.shape;
    say("front end: " + describe_frontend(resolve_frontend(m.frontend, shape.rate)));
  }
  say(fmt::format("network: {}, {} blocks of width {}", m.layer, m.depth, m.width));
  say(fmt::format(
      "training: {} steps of up to {} {}{}", grouped(t.steps),
      grouped(t.batch_tokens > 0 ? t.batch_tokens : t.batch),
      t.batch_tokens == 0 ? "sequences"
      : m.frontend.used() ? "samples"
                          : "tokens",
      suggestion.seconds > 0 ? fmt::format("; about {}", duration(suggestion.seconds)) : ""));
  for (const std::string& advice : suggestion.advice) say("consider: " + advice);
  if (o.print) {
    fmt::print("{}", text);
    return 0;
  }
  write_file_atomically(out, text);
  say(fmt::format("written: {}\n\nnext:\n  {} train {}", out.string(), program(),
                  shell_word(out.string())));
  return 0;
}

}  // namespace

void add_init(CLI::App& app, Action& action) {
  auto o = std::make_shared<InitOptions>();
  auto* command = app.add_subcommand("init", "Look at your data and write a config that trains");
  command
      ->add_option("data", o->data,
                   "file, folder or archive: sound, texts or pictures by class, tables (.csv, "
                   ".tsv), arrays (.npy, .npz), .ts, IDX, or a public set as downloaded")
      ->required();
  command->add_option("--out", o->out, "config to write (default: NAME-OF-DATA.toml)");
  command->add_flag("--force", o->force, "replace the config that is there");
  command->add_flag("--print", o->print, "show the config on standard output, write no file");
  command->add_option("--task", o->task, "what the data are, as data list names them");
  command->add_option("--set", o->settings, "choose a key yourself: --set task.label_column=kind")
      ->take_all()
      ->allow_extra_args(false);
  command->add_option("--minutes", o->minutes, "choose the steps so that training takes this long")
      ->check(CLI::Range(0.1, 1e6));
  command
      ->add_option("--measure", o->measure, "seconds to time steps for; 0: no estimate of the time")
      ->check(CLI::Range(0.0, 600.0))
      ->capture_default_str();
  command->add_option("--threads", o->threads, "0: as many as the process may use")
      ->check(CLI::Range(0, 4096));
  command->footer(
      "The names and first rows of the files show the kind of data, and every choice has a\n"
      "comment in the config. --task with a --set task.… of your own turns the guessing off.\n"
      "docs/data.md");
  command->callback([o, &action] { action = [o] { return init(*o); }; });
}

}  // namespace rotrnn::cli
