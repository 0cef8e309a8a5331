#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "rotrnn/cli/command.h"
#include "rotrnn/cli/info_model.h"
#include "rotrnn/cli/output/json_line.h"
#include "rotrnn/cli/output/text.h"
#include "rotrnn/layers/registry.h"
#include "rotrnn/network/frontend.h"
#include "rotrnn/training/bench/inventory.h"
#include "rotrnn/training/checkpoint/checkpoint.h"

namespace rotrnn::cli {
namespace {

struct InfoOptions {
  std::string subject;
  std::vector<std::string> settings;
  bool json = false, no_measure = false, keys = false, layers = false;
};

struct Subject {
  Config config;
  TaskFacts facts;
  int64_t step = -1;  // of a run; -1: a config
};

Subject read_subject(const InfoOptions& o) {
  namespace fs = std::filesystem;
  Subject subject;
  if (o.subject.empty()) {
    subject.config = default_config(o.settings);
  } else if (fs::is_directory(o.subject)) {
    if (!o.settings.empty())
      throw std::invalid_argument("--set goes with a config, not with a run");
    CheckpointHeader header =
        read_checkpoint(find_checkpoint(o.subject, Which::best), Parts::weights).header;
    subject.config = std::move(header.config);
    subject.step = header.state.step;
    subject.facts = std::move(header.facts);
    return subject;
  } else {
    subject.config = load_config(o.subject, o.settings);
  }
  subject.facts = describe_task(subject.config.task);
  return subject;
}

// Blocks are alike, so the table shows one and how many there are.
std::vector<std::vector<std::string>> rows_of(const std::vector<ParameterInfo>& parameters,
                                              int64_t depth) {
  std::vector<std::vector<std::string>> rows{{"parameter", "shape", "count", "group"}};
  for (const ParameterInfo& p : parameters) {
    int64_t times = 1;
    std::string name = p.name;
    if (name.starts_with("blocks.")) {
      if (!name.starts_with("blocks.0.")) continue;
      times = depth;
      name = "blocks.*." + name.substr(9);
    }
    const std::string count =
        times == 1 ? grouped(p.count) : fmt::format("{} × {}", times, grouped(p.count));
    rows.push_back({name, fmt::format("[{}]", fmt::join(p.shape, ", ")), count, p.group});
  }
  return rows;
}

void print_info_json(const Subject& s, const std::vector<ParameterInfo>& parameters, int64_t total,
                     const Estimate& e) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const ParameterInfo& p : parameters) {
    list.push_back({{"name", p.name}, {"shape", p.shape}, {"count", p.count}, {"group", p.group}});
  }
  const FrontendOptions frontend = frontend_of(s.config.model, s.facts.shape);
  nlohmann::ordered_json out{
      {"task", s.config.task.name},
      {"layer", s.config.model.body == Body::features ? "features" : s.config.model.layer},
      {"frontend", describe_frontend(frontend)},
      {"parameters", total},
      {"tokens_per_step", e.tokens_per_step},
      {"useful_flops_per_token", e.flops_per_token},
      {"memory_bytes", e.memory_bytes}};
  if (s.step >= 0) out["step"] = s.step;
  if (e.tokens_per_second > 0) {
    out["tokens_per_second"] = e.tokens_per_second;
    out["hours"] = e.hours;
  }
  out["tensors"] = list;
  print_json_line(out);
}

// As the Markdown table that docs/config.md holds.
void print_keys() {
  fmt::print("| key | default | values | meaning |\n|---|---|---|---|\n");
  for (const ConfigKey& key : config_keys()) {
    fmt::print("| `{}` | {} | {} | {} |\n", key.name, key.default_value, key.type, key.help);
  }
}

void print_layers() {
  std::vector<std::vector<std::string>> rows;
  for (const std::string& name : layer_names()) rows.push_back({name, layer_summary(name)});
  fmt::print("{}", table(rows));
}

int run_info(const InfoOptions& o) {
  if (o.layers) {
    print_layers();
    return 0;
  }
  if (o.keys) {
    print_keys();
    return 0;
  }
  if (is_model_file(o.subject)) return print_model(o.subject, o.json);
  const Subject s = read_subject(o);
  const auto parameters = inventory(s.config.model, s.facts.shape);
  int64_t total = 0;
  for (const ParameterInfo& p : parameters) total += p.count;
  const bool fitted = s.config.model.body == Body::features;
  const Estimate e = fitted ? Estimate{} : estimate(s.config, s.facts, !o.no_measure);
  if (o.json) {
    print_info_json(s, parameters, total, e);
    return 0;
  }
  const ModelOptions& m = s.config.model;
  if (fitted) {
    fmt::print("fitted to {}: {} rotations, 6 features of each\n\n{}\n{} numbers\n",
               s.config.task.name, grouped(m.features.states), table(rows_of(parameters, 1), {2}),
               grouped(total));
    return 0;
  }
  fmt::print("{} on {}: {} blocks, width {}, {}{}\n\n", m.layer, s.config.task.name, m.depth,
             m.width, describe_layer(m), m.bidirectional ? ", bidirectional" : "");
  if (m.frontend.used()) {
    fmt::print("front end: {}\n\n", describe_frontend(frontend_of(m, s.facts.shape)));
  }
  fmt::print("{}\n", table(rows_of(parameters, m.depth), {2}));
  fmt::print("{} parameters\n", grouped(total));
  if (s.step >= 0) fmt::print("weights of step {}\n", s.step);
  fmt::print("a step: {} sequences, about {} tokens, {:.1f} useful GFLOP\n",
             s.config.training.batch, grouped(static_cast<int64_t>(e.tokens_per_step)),
             e.tokens_per_step * e.flops_per_token * 1e-9);
  fmt::print("memory of training: about {}\n", bytes(e.memory_bytes));
  if (!o.no_measure) {
    fmt::print("time of {} steps on this machine: about {} ({} tokens/s)\n",
               grouped(s.config.training.steps), duration(e.hours * 3600),
               grouped(static_cast<int64_t>(e.tokens_per_second)));
  }
  return 0;
}

}  // namespace

void add_info(CLI::App& app, Action& action) {
  auto options = std::make_shared<InfoOptions>();
  auto* command = app.add_subcommand(
      "info",
      "Modules, parameters, memory and time of a config or a run; what an exported model is");
  command->add_option("subject", options->subject,
                      "TOML file, run folder or exported model; none: the quick start");
  command->add_option("--set", options->settings, "change a key: --set model.width=64")
      ->take_all()
      ->allow_extra_args(false);
  command->add_flag("--json", options->json, "one line of JSON");
  command->add_flag("--no-measure", options->no_measure, "do not time the network on this machine");
  command->add_flag("--keys", options->keys, "list every key that a config may have");
  command->add_flag("--layers", options->layers, "list the layers that model.layer may name");
  command->callback([options, &action] { action = [options] { return run_info(*options); }; });
}

}  // namespace rotrnn::cli
