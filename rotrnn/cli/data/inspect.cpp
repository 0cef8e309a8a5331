#include "rotrnn/cli/data/inspect.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "rotrnn/base/message.h"
#include "rotrnn/base/threads.h"
#include "rotrnn/cli/data/inspect_sample.h"
#include "rotrnn/cli/output/json_line.h"
#include "rotrnn/cli/output/text.h"
#include "rotrnn/data/guess/detect.h"
#include "rotrnn/data/task_table.h"
#include "rotrnn/io/atomic_file.h"
#include "rotrnn/training/config/config.h"

namespace rotrnn::cli {
namespace {

namespace fs = std::filesystem;

struct InspectOptions {
  std::string path, task, config, images;
  std::vector<std::string> settings;
  int64_t samples = 3, width = 0;
  int threads = 0;
  bool json = false;
};

// Examples of one split, as the data name it, or as training would choose it.
struct Set {
  std::string name;
  std::vector<int64_t> records;  // number of the record of every example
  std::vector<int64_t> lengths;
};

struct Data {
  TaskOptions options;
  std::shared_ptr<const Records> records;
  Preprocessing preprocessing;
  std::vector<Set> sets;
  std::vector<std::string> messages;
};

// What is there

TaskOptions task_options(const InspectOptions& o) {
  Config config = o.config.empty() ? Config{} : load_config(o.config, {});
  // Another kind than the config's keeps its other settings out.
  if (!o.task.empty()) config.task.name = o.task;
  if (!o.path.empty()) {
    config.task.path = o.path;
    config.task.train_path = config.task.validation_path = config.task.test_path = "";
  }
  for (const std::string& setting : o.settings) apply_setting(config, setting);
  if (o.config.empty() && o.task.empty()) {
    if (o.path.empty()) throw std::invalid_argument("name a path, or a --config");
    const bool named = std::any_of(o.settings.begin(), o.settings.end(),
                                   [](const auto& s) { return s.starts_with("task.name="); });
    if (!named) config.task.name = detect_task(o.path);
    if (config.task.name.empty()) {
      std::vector<std::string> names;
      for (const TaskSummary& task : task_summaries()) names.push_back(task.name);
      throw std::invalid_argument(
          fmt::format("{}: its names do not show a task; name it with --task, one of {}", o.path,
                      fmt::join(names, ", ")));
    }
  }
  check_task(config.task);
  return config.task;
}

// As stored, in the splits that the data name.
Data read_data(const TaskOptions& options, int threads) {
  Data data;
  data.options = options;
  data.records = std::make_shared<Records>(read_task(options, threads));
  const Records& r = *data.records;
  // A few examples show how sequences are read; nothing is learned.
  std::vector<int64_t> some(static_cast<std::size_t>(std::min<int64_t>(r.size(), 100)));
  std::iota(some.begin(), some.end(), 0);
  data.preprocessing = find_task(options.name).prepare(options, r, some);
  data.preprocessing.max_length = 0;
  data.preprocessing.end_mark = false;
  std::map<Split, Set> sets;
  for (int64_t i = 0; i < r.size(); ++i) {
    Set& set = sets[r.examples[i].split];
    set.records.push_back(i);
    int64_t length = 0;
    for (int64_t k = 0; k < r.form.towers; ++k) {
      length += data.preprocessing.length(r.sequences.at(i * r.form.towers + k));
    }
    set.lengths.push_back(length);
  }
  for (auto& [split, set] : sets) {
    set.name = split == Split::any ? "all" : split_name(split);
    data.sets.push_back(std::move(set));
  }
  if (r.skipped > 0) {
    data.messages.push_back(fmt::format("{} example(s) were skipped: {}{}", r.skipped,
                                        fmt::join(r.warnings, "; "),
                                        r.skipped > std::ssize(r.warnings) ? "; …" : ""));
  }
  return data;
}

// As a network would see them: split, cut, with what was learned on train.
Data load_data(const TaskOptions& options, int threads) {
  TaskData task = load_task(options, threads);
  Data data;
  data.options = options;
  data.messages = task.messages;
  data.preprocessing = task.facts.preprocessing;
  data.records = std::make_shared<Records>(task.train.records());
  const Record* first = task.train.records().examples.data();
  for (const auto& [examples, name] :
       {std::pair(&task.train, "train"), std::pair(&task.validation, "validation"),
        std::pair(&task.test, "test")}) {
    Set set{name, {}, {}};
    for (int64_t i = 0; i < examples->size(); ++i) {
      set.records.push_back(&examples->record(i) - first);
      set.lengths.push_back(examples->length(i));
    }
    data.sets.push_back(std::move(set));
  }
  return data;
}

// Facts

struct Spread {
  double low = INFINITY, mean = 0, high = -INFINITY;
};

struct Facts {
  int64_t shortest = 0, longest = 0, groups = 0;
  double mean = 0, median = 0;
  std::vector<int64_t> labels;  // of examples, or of steps
  std::vector<Spread> values;   // targets
};

Facts facts_of(const Set& set, const Records& r) {
  Facts f;
  f.labels.assign(r.classes.size(), 0);
  if (set.records.empty()) return f;
  std::vector<int64_t> lengths = set.lengths;
  std::sort(lengths.begin(), lengths.end());
  const std::size_t n = lengths.size();
  f.shortest = lengths.front();
  f.longest = lengths.back();
  f.median = static_cast<double>(lengths[(n - 1) / 2] + lengths[n / 2]) / 2;
  f.mean = static_cast<double>(std::accumulate(lengths.begin(), lengths.end(), int64_t{0})) /
           static_cast<double>(n);
  std::set<std::string_view> groups;
  for (const int64_t i : set.records) {
    const Record& e = r.examples[i];
    if (!e.group.empty()) groups.insert(e.group);
    if (r.labels[i] >= 0) ++f.labels[static_cast<std::size_t>(r.labels[i])];
    for (const int32_t c : e.token_classes) ++f.labels[static_cast<std::size_t>(c)];
    if (f.values.size() < e.values.size()) f.values.resize(e.values.size());
    for (std::size_t k = 0; k < e.values.size(); ++k) {
      f.values[k].low = std::min<double>(f.values[k].low, e.values[k]);
      f.values[k].high = std::max<double>(f.values[k].high, e.values[k]);
      f.values[k].mean += e.values[k] / static_cast<double>(n);
    }
  }
  f.groups = std::ssize(groups);
  return f;
}

// Of every class in turn, so that a few samples show several; evenly spread where there are none.
std::vector<int64_t> choose_samples(const Set& set, const Records& r, int64_t count) {
  std::map<int64_t, std::vector<int64_t>> by_class;
  for (const int64_t i : set.records) by_class[r.labels[i]].push_back(i);
  std::vector<int64_t> out;
  const auto n = std::ssize(set.records);
  count = std::min(count, n);
  if (by_class.size() < 2) {
    for (int64_t i = 0; i < count; ++i) out.push_back(set.records[i * n / count]);
    return out;
  }
  for (std::size_t round = 0; std::ssize(out) < count; ++round) {
    for (const auto& [label, members] : by_class) {
      if (round < members.size() && std::ssize(out) < count) out.push_back(members[round]);
    }
  }
  return out;
}

std::string target_text(const Records& r, int64_t i) {
  if (r.labels[i] >= 0) return "label " + r.classes[static_cast<std::size_t>(r.labels[i])];
  const Record& e = r.examples[i];
  if (!e.values.empty()) return fmt::format("value {}", fmt::join(e.values, ", "));
  return e.token_classes.empty() ? "" : "one label per step";
}

// Output

const char* unit_of(const Data& data) {
  switch (data.preprocessing.kind) {
    case Preprocessing::Kind::characters:
      return "characters";
    case Preprocessing::Kind::bytes:
      return "bytes";
    case Preprocessing::Kind::ids:
      return "tokens";
    case Preprocessing::Kind::values:
      break;
  }
  return "steps";
}

void print_inspect_json(const Data& data, Look look, int64_t samples) {
  const Records& r = *data.records;
  auto out = nlohmann::ordered_json::array();
  for (const Set& set : data.sets) {
    const Facts f = facts_of(set, r);
    nlohmann::ordered_json line{
        {"set", set.name},           {"task", data.options.name}, {"examples", set.records.size()},
        {"unit", unit_of(data)},     {"shortest", f.shortest},    {"mean_length", f.mean},
        {"median_length", f.median}, {"longest", f.longest},      {"channels", r.form.channels},
        {"classes", r.classes},      {"labels", f.labels},        {"groups", f.groups},
        {"skipped", r.skipped}};
    for (const Spread& v : f.values) {
      line["values"].push_back({{"least", v.low}, {"mean", v.mean}, {"most", v.high}});
    }
    line["samples"] = nlohmann::ordered_json::array();
    for (const int64_t i : choose_samples(set, r, samples)) {
      nlohmann::ordered_json sample{{"name", r.examples[i].name}};
      if (r.labels[i] >= 0) sample["label"] = r.classes[static_cast<std::size_t>(r.labels[i])];
      if (look == Look::text || look == Look::words) {
        for (int64_t k = 0; k < r.form.towers; ++k) {
          sample["text"].push_back(excerpt_of(r, data.preprocessing, i * r.form.towers + k, 300));
        }
      }
      line["samples"].push_back(std::move(sample));
    }
    out.push_back(std::move(line));
  }
  print_json_line(out);
}

void print_lengths(const Data& data, const std::vector<Facts>& facts) {
  const bool groups =
      std::any_of(facts.begin(), facts.end(), [](const Facts& f) { return f.groups > 0; });
  std::vector<std::vector<std::string>> rows{
      {"set", "examples", "shortest", "mean", "median", "longest"}};
  if (groups) rows[0].emplace_back("groups");
  for (std::size_t s = 0; s < facts.size(); ++s) {
    const Facts& f = facts[s];
    rows.push_back({data.sets[s].name, grouped(std::ssize(data.sets[s].records)),
                    grouped(f.shortest), fmt::format("{:.1f}", f.mean),
                    fmt::format("{:.1f}", f.median), grouped(f.longest)});
    if (groups) rows.back().push_back(grouped(f.groups));
  }
  fmt::print("{}", table(rows, {1, 2, 3, 4, 5, 6}));
}

void print_labels(const Data& data, const std::vector<Facts>& facts) {
  constexpr std::size_t kMost = 50, kBar = 24;
  const auto& classes = data.records->classes;
  std::vector<int64_t> totals;
  std::vector<std::vector<std::string>> rows{{"label"}};
  double widest = 0;
  for (std::size_t s = 0; s < facts.size(); ++s) {
    totals.push_back(std::accumulate(facts[s].labels.begin(), facts[s].labels.end(), int64_t{0}));
    rows[0].push_back(data.sets[s].name);
    for (const int64_t count : facts[s].labels) {
      widest = std::max(widest, static_cast<double>(count) /
                                    static_cast<double>(std::max<int64_t>(1, totals[s])));
    }
  }
  if (widest == 0) return;
  for (std::size_t c = 0; c < std::min(kMost, classes.size()); ++c) {
    std::vector<std::string> row{classes[c]};
    for (std::size_t s = 0; s < facts.size(); ++s) {
      const double share = static_cast<double>(facts[s].labels[c]) /
                           static_cast<double>(std::max<int64_t>(1, totals[s]));
      const auto bar = static_cast<std::size_t>(std::lround(share / widest * kBar));
      row.push_back(fmt::format("{:>6} {}", percent(share), std::string(bar, '#')));
    }
    rows.push_back(std::move(row));
  }
  fmt::print("\n{}", table(rows));
  if (classes.size() > kMost) fmt::print("… and {} more labels\n", classes.size() - kMost);
}

void print_values(const Data& data, const std::vector<Facts>& facts) {
  std::vector<std::vector<std::string>> rows{{"value", "set", "least", "mean", "most"}};
  for (std::size_t s = 0; s < facts.size(); ++s) {
    for (std::size_t k = 0; k < facts[s].values.size(); ++k) {
      const auto& names = data.preprocessing.target_names;
      const Spread& v = facts[s].values[k];
      rows.push_back({k < names.size() ? names[k] : std::to_string(k), data.sets[s].name,
                      fmt::format("{:.4g}", v.low), fmt::format("{:.4g}", v.mean),
                      fmt::format("{:.4g}", v.high)});
    }
  }
  if (rows.size() > 1) fmt::print("\n{}", table(rows, {2, 3, 4}));
}

void print_samples(const Data& data, Look look, const InspectOptions& o) {
  const Records& r = *data.records;
  for (const Set& set : data.sets) {
    const auto samples = choose_samples(set, r, o.samples);
    if (!samples.empty()) fmt::print("\n{}\n", set.name);
    for (const int64_t i : samples) {
      const std::string target = target_text(r, i);
      fmt::print("  {}{}{}\n", r.examples[i].name, target.empty() ? "" : ", ", target);
      for (int64_t k = 0; k < r.form.towers; ++k) {
        for (const std::string& line :
             lines_of(r, data.preprocessing, look, i * r.form.towers + k, o.width)) {
          fmt::print("{}{}\n", line.empty() ? "" : "    ", line);
        }
      }
    }
  }
}

void print_inspect_text(const Data& data, Look look, const InspectOptions& o) {
  const RecordForm& form = data.records->form;
  std::vector<Facts> facts;
  for (const Set& set : data.sets) facts.push_back(facts_of(set, *data.records));
  fmt::print("{}, lengths in {}", data.options.name, unit_of(data));
  if (!data.preprocessing.tokens()) fmt::print(" of {}", counted(form.channels, "channel"));
  if (form.towers > 1) fmt::print(", of {} sequences together", form.towers);
  fmt::print("\n");
  print_lengths(data, facts);
  print_labels(data, facts);
  print_values(data, facts);
  print_samples(data, look, o);
}

// A label as a part of a file's name.
std::string file_word(const std::string& text) {
  std::string out;
  for (const char c : text.substr(0, 40))
    out += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return out;
}

void write_images(const Data& data, Look look, const InspectOptions& o) {
  if (look != Look::picture) {
    throw std::invalid_argument(
        fmt::format("--images: the examples of task \"{}\" are not pictures{}", data.options.name,
                    data.records->form.element == Element::u8 && !data.preprocessing.tokens()
                        ? ", or are not square; say how wide they are with --width"
                        : ""));
  }
  const Records& r = *data.records;
  fs::create_directories(o.images);
  int64_t written = 0;
  for (const Set& set : data.sets) {
    int64_t number = 0;
    for (const int64_t i : choose_samples(set, r, o.samples)) {
      std::string label;
      if (r.labels[i] >= 0) {
        label = fmt::format("-{}", file_word(r.classes[static_cast<std::size_t>(r.labels[i])]));
      }
      write_file_atomically(
          fs::path(o.images) / fmt::format("{}-{:03}{}.png", set.name, number++, label),
          encode_png(picture_of(r, i, o.width)));
      ++written;
    }
  }
  print_message("{}: {} pictures\n", o.images, written);
}

int inspect(const InspectOptions& o) {
  const TaskOptions options = task_options(o);
  const int threads = o.threads > 0 ? o.threads : kernels::available_threads();
  const Data data = o.config.empty() ? read_data(options, threads) : load_data(options, threads);
  for (const std::string& message : data.messages) print_message("{}\n", message);
  if (data.records->classes.size() == 1 && options.target == TaskTarget::label) {
    print_message(
        "all examples have the label \"{}\"; if their names show others, see "
        "task.label_pattern\n",
        data.records->classes[0]);
  }
  const Look look = look_of(*data.records, data.preprocessing, o.width);
  if (!o.images.empty()) write_images(data, look, o);
  o.json ? print_inspect_json(data, look, o.samples) : print_inspect_text(data, look, o);
  return 0;
}

}  // namespace

void add_data_inspect(CLI::App& data, Action& action) {
  auto o = std::make_shared<InspectOptions>();
  auto* command = data.add_subcommand("inspect", "Sizes, lengths, labels and samples of any data");
  command->add_option("path", o->path, "folder, archive or file; its names show the task");
  auto* task = command->add_option("--task", o->task, "its task or kind, as data list names them");
  auto* config = command->add_option(
      "--config", o->config, "TOML file: show what a network would see, split as training does");
  task->excludes(config);
  command->add_option("--set", o->settings, "change a key: --set task.label_column=kind")
      ->take_all()
      ->allow_extra_args(false);
  command->add_option("--samples", o->samples, "how many to show of each set")
      ->capture_default_str()
      ->check(CLI::Range(0, 1000));
  command->add_option("--images", o->images, "write the samples as PNG files into this folder");
  command->add_option("--width", o->width, "pixels in a row of pictures; 0: they are square")
      ->capture_default_str()
      ->check(CLI::Range(0, 16384));
  command->add_option("--threads", o->threads, "0: as many as the process may use")
      ->check(CLI::Range(0, 4096));
  command->add_flag("--json", o->json, "one line of JSON");
  command->callback([o, &action] { action = [o] { return inspect(*o); }; });
}

}  // namespace rotrnn::cli
