#include "rotrnn/training/checkpoint.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "rotrnn/io/atomic_file.h"
#include "rotrnn/version.h"

namespace rotrnn {
namespace {

using Json = nlohmann::json;

constexpr int kFormat = 2;

// JSON has no NaN; a loss may be one.
Json number(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}
double number(const Json& value) {
  return value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>();
}

Json facts_json(const TaskFacts& facts) {
  const DataShape& s = facts.shape;
  return {{"input", s.input == InputKind::tokens ? "tokens" : "channels"},
          {"inputs", s.inputs},
          {"target", s.target == TargetKind::classes ? "classes" : "values"},
          {"outputs", s.outputs},
          {"towers", s.towers},
          {"per_token", s.per_token},
          {"typical_length", facts.typical_length},
          {"classes", facts.classes},
          {"preprocessing", to_json(facts.preprocessing)}};
}

TaskFacts parse_facts(const Json& json) {
  TaskFacts facts;
  DataShape& s = facts.shape;
  s.input = json.at("input") == "tokens" ? InputKind::tokens : InputKind::channels;
  s.inputs = json.at("inputs").get<int64_t>();
  s.target = json.at("target") == "classes" ? TargetKind::classes : TargetKind::values;
  s.outputs = json.at("outputs").get<int64_t>();
  s.towers = json.at("towers").get<int64_t>();
  s.per_token = json.at("per_token").get<bool>();
  facts.typical_length = json.at("typical_length").get<int64_t>();
  facts.classes = json.at("classes").get<std::vector<std::string>>();
  facts.preprocessing = preprocessing_from_json(json.at("preprocessing"));
  const Preprocessing& p = facts.preprocessing;
  const int64_t inputs = p.tokens() ? std::ssize(p.vocabulary) : p.form.channels;
  const int64_t outputs = s.target == TargetKind::classes ? std::ssize(facts.classes)
                          : s.per_token ? std::ssize(p.target_channels) * p.horizon
                                        : std::ssize(p.target_mean);
  if (s.inputs < 1 || s.outputs < 1 || s.inputs != inputs || s.outputs != outputs ||
      s.towers != p.form.towers || p.tokens() != (s.input == InputKind::tokens)) {
    throw std::runtime_error("the facts of its task do not fit together");
  }
  return facts;
}

CheckpointHeader parse_header(const Json& json, const std::string& where) {
  const int format = json.at("format").get<int>();
  if (format != kFormat) {
    throw std::runtime_error(
        fmt::format("{}: format {} is not known to this version, which reads format {}", where,
                    format, kFormat));
  }
  CheckpointHeader header;
  header.version = json.at("version").get<std::string>();
  header.config = parse_config(json.at("config").get<std::string>(), where + " (config)");
  check(header.config);
  header.facts = parse_facts(json.at("task"));
  const Json& state = json.at("state");
  TrainState& s = header.state;
  s.step = state.at("step").get<int64_t>();
  s.tokens = state.at("tokens").get<int64_t>();
  s.best_score = number(state.at("best_score"));
  s.best_step = state.at("best_step").get<int64_t>();
  s.loss_sum = number(state.at("loss_sum"));
  s.loss_count = state.at("loss_count").get<int64_t>();
  return header;
}

}  // namespace

std::string header_text(const CheckpointHeader& header) {
  const TrainState& s = header.state;
  const Json json{{"format", kFormat},
                  {"version", kVersion},
                  {"config", to_toml(header.config)},
                  {"task", facts_json(header.facts)},
                  {"state",
                   {{"step", s.step},
                    {"tokens", s.tokens},
                    {"best_score", number(s.best_score)},
                    {"best_step", s.best_step},
                    {"loss_sum", number(s.loss_sum)},
                    {"loss_count", s.loss_count}}}};
  return json.dump(2) + "\n";
}

CheckpointHeader read_header(const std::filesystem::path& checkpoint) {
  const auto file = checkpoint / kStateFile;
  const std::string text = read_file(file);
  try {
    return parse_header(Json::parse(text), file.string());
  } catch (const Json::exception& error) {
    throw std::runtime_error(
        fmt::format("{}: not a checkpoint of this program: {}", file.string(), error.what()));
  } catch (const std::logic_error& error) {
    throw std::runtime_error(error.what());
  }
}

std::filesystem::path find_checkpoint(const std::filesystem::path& run, Which which) {
  namespace fs = std::filesystem;
  if (fs::exists(run / kStateFile)) return run;
  const fs::path best = existing_folder(run / "best"), last = existing_folder(run / "last");
  const fs::path found = which == Which::best && !best.empty() ? best : last;
  if (found.empty()) {
    throw std::runtime_error(fmt::format(
        "{}: {}", run.string(),
        fs::exists(run) ? "there is no checkpoint in it yet; wait for the first one or train again"
                        : "there is no such run folder"));
  }
  return found;
}

}  // namespace rotrnn
