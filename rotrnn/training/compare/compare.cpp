#include "rotrnn/training/compare/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "rotrnn/base/median.h"
#include "rotrnn/io/atomic_file.h"
#include "rotrnn/io/folder_lock.h"
#include "rotrnn/layers/registry.h"
#include "rotrnn/training/bench/inventory.h"
#include "rotrnn/training/checkpoint/run_folder.h"
#include "rotrnn/version.h"

namespace rotrnn {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kStateNames[] = {"waiting", "unfinished", "failed", "finished"};

double number_or_nan(const Json& value) {  // JSON has no NaN; a loss may be one
  return value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>();
}

Json to_json(const Cell& c) {
  Json out{{"seed", c.seed},
           {"state", kStateNames[static_cast<size_t>(c.state)]},
           {"budget_minutes", c.minutes},
           {"steps", c.steps},
           {"seconds", c.seconds},
           {"running", c.running}};
  if (c.timing.steps > 0) {
    out["timing"] = {{"setup", c.timing.setup},
                     {"step", c.timing.step},
                     {"validation", c.timing.validation},
                     {"test", c.timing.test},
                     {"steps", c.timing.steps}};
  }
  if (c.state == CellState::failed) out["error"] = c.error;
  if (c.state == CellState::finished) {
    out["best_step"] = c.best_step;
    out["validation_accuracy"] = c.validation_accuracy;
    out["test_accuracy"] = c.test_accuracy;
    out["test_loss"] = c.test_loss;
    out["majority_share"] = c.majority;
    out["tokens_per_second"] = c.tokens_per_second;
    out["peak_memory_mb"] = c.peak_memory_mb;
  }
  return out;
}

void read_cell(const Json& json, Cell& c) {
  const auto state = json.at("state").get<std::string>();
  const auto found = std::find(std::begin(kStateNames), std::end(kStateNames), state);
  if (found == std::end(kStateNames)) throw std::invalid_argument("unknown state");
  c.state = static_cast<CellState>(found - std::begin(kStateNames));
  c.minutes = json.at("budget_minutes").get<double>();
  c.steps = json.at("steps").get<int64_t>();
  c.seconds = json.at("seconds").get<double>();
  c.running = json.at("running").get<bool>();
  if (json.contains("timing")) {
    const Json& t = json["timing"];
    c.timing = {t.at("setup").get<double>(), t.at("step").get<double>(),
                t.at("validation").get<double>(), t.at("test").get<double>(),
                t.at("steps").get<int64_t>()};
  }
  if (c.state == CellState::failed) c.error = json.at("error").get<std::string>();
  if (c.state == CellState::finished) {
    c.best_step = json.at("best_step").get<int64_t>();
    c.validation_accuracy = json.at("validation_accuracy").get<double>();
    c.test_accuracy = json.at("test_accuracy").get<double>();
    c.test_loss = number_or_nan(json.at("test_loss"));
    c.majority = json.at("majority_share").get<double>();
    c.tokens_per_second = json.at("tokens_per_second").get<double>();
    c.peak_memory_mb = json.at("peak_memory_mb").get<double>();
  }
}

void write_cell(const Cell& cell) {
  fs::create_directories(cell.folder);
  write_file_atomically(cell.folder / "cell.json", to_json(cell).dump(2) + "\n");
}

// The config of a cell: the variant's, with its own seed and number of steps.
Config config_of(const ComparedVariant& variant, const Cell& cell) {
  Config config = variant.config;
  config.training.seed = cell.seed;
  if (cell.steps > 0) config.training.steps = cell.steps;
  return config;
}

[[noreturn]] void refuse(const Cell& cell, const std::string& what, const CompareRequest& request) {
  throw std::invalid_argument(fmt::format(
      "{}: {}; repeat the comparison as it was started, or choose another folder than --out {}",
      cell.folder.string(), what, request.out.string()));
}

std::string budget_text(double minutes) {
  return minutes > 0 ? fmt::format("{} minutes", minutes) : std::string("a number of steps");
}

// A cell as it was left, or a new one; a cell run with other settings is refused.
Cell open_cell(const ComparedVariant& variant, int64_t seed, const CompareRequest& request) {
  Cell cell;
  cell.seed = seed;
  cell.folder = request.out / variant.variant.name / fmt::format("seed-{}", seed);
  cell.minutes = request.minutes;
  cell.steps = request.minutes > 0 ? 0 : variant.config.training.steps;
  const fs::path file = cell.folder / "cell.json", config_file = cell.folder / "config.toml";
  if (!fs::exists(file) || !fs::exists(config_file)) {  // not begun
    if (fs::exists(config_file) || fs::exists(cell.folder / "last")) {
      refuse(cell, "there is a run in it that is no part of a comparison", request);
    }
    return cell;
  }
  try {
    read_cell(Json::parse(read_file(file)), cell);
  } catch (const std::exception& error) {
    throw std::runtime_error(
        fmt::format("{}: not a cell of a comparison ({}); remove its folder to run it again",
                    file.string(), error.what()));
  }
  if (cell.minutes != request.minutes) {
    refuse(cell,
           fmt::format("it was started with {} as its budget, not {}", budget_text(cell.minutes),
                       budget_text(request.minutes)),
           request);
  }
  if (cell.minutes == 0) cell.steps = variant.config.training.steps;
  const Config wanted = config_of(variant, cell);
  const Config found = parse_config(read_file(config_file), config_file.string());
  const auto names = differences(found, wanted);
  if (!names.empty()) {
    std::vector<std::string> parts;
    for (const std::string& name : names) {
      parts.push_back(
          fmt::format("{} = {}, not {}", name, value_of(found, name), value_of(wanted, name)));
    }
    refuse(cell, fmt::format("it was started with {}", fmt::join(parts, ", ")), request);
  }
  return cell;
}

bool fits(const ModelOptions& options) {
  try {
    check_layers(options);
    return true;
  } catch (const SettingError&) {
    return false;
  }
}

void check_names(const std::vector<Variant>& variants) {
  if (variants.empty()) throw std::invalid_argument("compare: no variants are given");
  std::set<std::string> seen;
  for (const Variant& variant : variants) {
    if (!seen.insert(variant.name).second) {
      throw std::invalid_argument(fmt::format("compare: \"{}\" is named twice", variant.name));
    }
  }
}

// Seconds in the last line of metrics.jsonl: how long a killed run got.
double last_seconds(const fs::path& run) {
  double seconds = 0;
  if (!fs::exists(run / "metrics.jsonl")) return 0;
  std::istringstream in(read_file(run / "metrics.jsonl"));
  for (std::string line; std::getline(in, line);) {
    const auto json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (json.is_object()) seconds = json.value("seconds", seconds);
  }
  return seconds;
}

// The median over the lines of metrics.jsonl, since single lines may hold a pause of the machine.
double median_rate(const fs::path& run) {
  std::vector<double> rates;
  std::istringstream in(read_file(run / "metrics.jsonl"));
  for (std::string line; std::getline(in, line);) {
    const auto json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (json.is_object() && json.contains("tokens_per_second")) {
      rates.push_back(json["tokens_per_second"].get<double>());
    }
  }
  return median(rates);
}

class Comparer {
 public:
  Comparer(const CompareRequest& request, const CompareObserver& observer)
      : observer_(observer), comparison_(open_comparison(request)) {}

  Comparison run() {
    announce();
    write();
    // Seed by seed, so that every variant has a result early, and a machine that slows down over
    // time meets all of them.
    for (size_t i = 0; i < static_cast<size_t>(comparison_.request.seeds); ++i) {
      for (ComparedVariant& variant : comparison_.variants) {
        if (variant.cells[i].state == CellState::finished) continue;
        run_cell(variant, variant.cells[i]);
        write();
        if (stopped()) return std::move(comparison_);
      }
    }
    return std::move(comparison_);
  }

 private:
  void say(const std::string& text) const {
    if (observer_.message) observer_.message(text);
  }

  bool stopped() const { return observer_.train.stop && observer_.train.stop(); }

  void announce() const {
    const int64_t yardstick = comparison_.variants.front().parameters;
    for (const ComparedVariant& v : comparison_.variants) {
      const ModelOptions& m = v.config.model;
      const double off =
          100 * (static_cast<double>(v.parameters) / static_cast<double>(yardstick) - 1);
      say(fmt::format("{}: {}, {}, {} parameters{}", v.variant.name, m.layer, describe_layer(m),
                      v.parameters,
                      v.parameters == yardstick ? "" : fmt::format(" ({:+.1f} %)", off)));
    }
  }

  void write() const {
    fs::create_directories(comparison_.request.out);
    write_file_atomically(comparison_.request.out / "compare.json",
                          to_json(comparison_).dump(2) + "\n");
    if (observer_.changed) observer_.changed(comparison_);
  }

  void run_cell(const ComparedVariant& variant, Cell& cell) {
    if (std::exchange(cell.running, false)) cell.seconds += last_seconds(cell.folder);  // killed
    try {
      if (cell.steps == 0 && !time_cell(variant, cell)) return;
      train_cell(variant, cell);
    } catch (const std::invalid_argument&) {
      throw;  // wrong use: it would concern every cell
    } catch (const std::exception& error) {
      cell.state = CellState::failed;
      cell.error = error.what();
      cell.seconds += last_seconds(cell.folder);
      say(fmt::format("{} failed: {}", cell.folder.string(), error.what()));
    }
    cell.running = false;
    write_cell(cell);
  }

  // False: stopped.
  bool time_cell(const ComparedVariant& variant, Cell& cell) {
    const double seconds = 60 * cell.minutes;
    say(fmt::format("{}, seed {}: timing", variant.variant.name, cell.seed));
    cell.timing = time_run(config_of(variant, cell), std::clamp(0.03 * seconds, 0.2, 20.0),
                           observer_.train.stop);
    if (cell.timing.steps == 0) return false;
    cell.steps = steps_that_fit(cell.timing, seconds, variant.config.training.evaluate_every);
    return true;
  }

  void train_cell(const ComparedVariant& variant, Cell& cell) {
    const bool resume = can_resume(cell.folder);
    cell.state = CellState::unfinished;
    cell.running = true;
    write_cell(cell);
    say(fmt::format("{}, seed {}: {} steps{}", variant.variant.name, cell.seed, cell.steps,
                    resume ? ", going on where it stopped" : ""));
    const TrainOutcome outcome =
        train({config_of(variant, cell), cell.folder, resume, {}}, quiet_observer());
    cell.seconds += outcome.seconds;
    if (!outcome.finished) return;
    cell.state = CellState::finished;
    cell.best_step = outcome.best_step;
    cell.validation_accuracy = outcome.best_score;
    cell.test_accuracy = outcome.test.accuracy;
    cell.test_loss = outcome.test.loss;
    cell.majority = outcome.majority.share;
    cell.tokens_per_second = median_rate(cell.folder);
    cell.peak_memory_mb = outcome.peak_memory_mb;
  }

  // Without the introduction of a single run.
  TrainObserver quiet_observer() const {
    TrainObserver observer = observer_.train;
    observer.message = nullptr;
    return observer;
  }

  CompareObserver observer_;
  Comparison comparison_;
};

}  // namespace

bool Comparison::finished() const {
  for (const ComparedVariant& variant : variants) {
    for (const Cell& cell : variant.cells) {
      if (cell.state != CellState::finished) return false;
    }
  }
  return true;
}

Spread spread_of(const std::vector<double>& values) {
  Spread s;
  s.count = std::ssize(values);
  for (const double value : values) s.mean += value / static_cast<double>(s.count);
  if (s.count < 2) return s;
  for (const double value : values) s.deviation += (value - s.mean) * (value - s.mean);
  s.deviation = std::sqrt(s.deviation / static_cast<double>(s.count - 1));
  return s;
}

CompareRow row_of(const ComparedVariant& variant) {
  std::vector<double> accuracy, majority, steps, rate, minutes, memory;
  CompareRow row;
  for (const Cell& cell : variant.cells) {
    if (cell.state != CellState::finished) continue;
    accuracy.push_back(cell.test_accuracy);
    majority.push_back(cell.majority);
    steps.push_back(static_cast<double>(cell.steps));
    rate.push_back(cell.tokens_per_second);
    minutes.push_back(cell.seconds / 60);
    memory.push_back(cell.peak_memory_mb);
  }
  row.accuracy = spread_of(accuracy);
  row.majority = spread_of(majority).mean;
  row.steps = spread_of(steps).mean;
  row.tokens_per_second = median(rate);
  row.peak_memory_mb = median(memory);
  row.minutes = spread_of(minutes).mean;
  return row;
}

int64_t match_state(const ModelOptions& options, int64_t target,
                    const std::function<int64_t(const ModelOptions&)>& count) {
  ModelOptions m = options;
  std::vector<int64_t> admissible;
  const int64_t most = 16 * std::max<int64_t>(options.state, 64);  // far beyond any match
  for (m.state = 1; m.state <= most; ++m.state) {
    if (fits(m)) admissible.push_back(m.state);
  }
  if (admissible.empty()) check_layers(options);  // says what is wrong
  auto count_of = [&](int64_t state) {
    m.state = state;
    return count(m);
  };
  const auto above = std::partition_point(admissible.begin(), admissible.end(),
                                          [&](int64_t state) { return count_of(state) < target; });
  if (above == admissible.begin()) return *above;
  // Several may have as many parameters: S4's states are in pairs.
  const int64_t most_below = count_of(above[-1]);
  const int64_t below = *std::partition_point(
      admissible.begin(), above, [&](int64_t state) { return count_of(state) < most_below; });
  if (above == admissible.end()) return below;
  return count_of(*above) - target < target - count_of(below) ? *above : below;
}

int64_t steps_that_fit(const RunTiming& timing, double seconds, int64_t evaluate_every) {
  // A part is kept back for checkpoints. The last step is always followed by an evaluation.
  const double fixed = timing.setup + timing.validation + timing.test;
  const double a_step = timing.step + timing.validation / static_cast<double>(evaluate_every);
  return std::max<int64_t>(1, static_cast<int64_t>((0.98 * seconds - fixed) / a_step));
}

Comparison open_comparison(const CompareRequest& request) {
  check_names(request.variants);
  Comparison out;
  out.request = request;
  for (const Variant& variant : request.variants) {
    ComparedVariant v;
    v.variant = variant;
    v.config = request.base;
    for (const std::string& setting : variant.settings) apply_setting(v.config, setting);
    ModelOptions& m = v.config.model;
    const DataShape shape = describe_task(v.config.task).shape;
    auto count = [&](const ModelOptions& options) { return parameter_count(options, shape); };
    const bool other = !out.variants.empty() && m.layer != out.variants[0].config.model.layer;
    if (request.match && other) m.state = match_state(m, out.variants[0].parameters, count);
    if (request.skip_unfit && !fits(m)) continue;
    check(v.config);
    v.parameters = count(m);
    for (int64_t i = 0; i < request.seeds; ++i) {
      v.cells.push_back(open_cell(v, request.base.training.seed + i, request));
    }
    out.variants.push_back(std::move(v));
  }
  if (out.variants.empty()) {
    throw std::invalid_argument("compare: none of the variants fits the sizes of the config");
  }
  return out;
}

Json to_json(const Comparison& comparison) {
  const CompareRequest& request = comparison.request;
  Json variants = Json::array();
  for (const ComparedVariant& v : comparison.variants) {
    Json cells = Json::array();
    for (const Cell& cell : v.cells) {
      cells.push_back(to_json(cell));
      cells.back().erase("running");
      cells.back()["run"] = cell.folder.lexically_relative(request.out).generic_string();
    }
    const CompareRow row = row_of(v);
    const ModelOptions& m = v.config.model;
    Json line{{"name", v.variant.name}, {"settings", v.variant.settings}, {"layer", m.layer},
              {"state", m.state},       {"parameters", v.parameters},     {"cells", cells}};
    line["finished"] = row.accuracy.count;
    if (row.accuracy.count > 0) {
      line["test_accuracy"] = {{"mean", row.accuracy.mean}, {"deviation", row.accuracy.deviation}};
      line["majority_share"] = row.majority;
      line["steps"] = row.steps;
      line["tokens_per_second"] = row.tokens_per_second;
      line["peak_memory_mb"] = row.peak_memory_mb;
      line["minutes_per_cell"] = row.minutes;
    }
    variants.push_back(std::move(line));
  }
  Json budget;
  if (request.minutes > 0) {
    budget["minutes"] = request.minutes;
  } else {
    budget["steps"] = request.base.training.steps;
  }
  return {{"version", kVersion},
          {"command", request.command},
          {"task", request.base.task.name},
          {"budget", budget},
          {"seeds", request.seeds},
          {"matched", request.match},
          {"finished", comparison.finished()},
          {"variants", variants}};
}

Comparison compare(const CompareRequest& request, const CompareObserver& observer) {
  std::optional<FolderLock> lock;
  if (fs::exists(request.out)) lock.emplace(request.out);
  Comparer comparer(request, observer);
  if (!lock) {
    fs::create_directories(request.out);
    lock.emplace(request.out);
  }
  return comparer.run();
}

}  // namespace rotrnn
