#include "rotrnn/training/config/config.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <stdexcept>

#include "rotrnn/io/atomic_file.h"
#include "rotrnn/layers/registry.h"
#include "rotrnn/training/config/config_keys.h"
#include "rotrnn/training/config/quickstart_toml.h"

namespace rotrnn {
namespace {

template <class... Ts>
struct Overloaded : Ts... {
  using Ts::operator()...;
};
template <class... Ts>
Overloaded(Ts...) -> Overloaded<Ts...>;

[[noreturn]] void refuse(const std::string& where, const std::string& what) {
  throw std::invalid_argument(where + ": " + what);
}

std::string type_text(const BoundKey& key) {
  return std::visit(
      Overloaded{[](const IntegerKey&) { return std::string("integer"); },
                 [](const NumberKey&) { return std::string("number"); },
                 [](const ChoiceKey& k) { return fmt::format("{}", fmt::join(k.names, ", ")); },
                 [](const bool*) { return std::string("true or false"); },
                 [](const std::string*) { return std::string("text"); }},
      key.place);
}

std::string seen_text(const toml::node& node) {
  std::ostringstream out;
  node.visit([&](const auto& value) { out << value; });
  return out.str();
}

void set_integer(const IntegerKey& key, const toml::node& node, const std::string& where,
                 const std::string& name) {
  if (!node.is_integer()) {
    refuse(where, fmt::format("{} must be an integer, not {}", name, seen_text(node)));
  }
  const int64_t value = node.as_integer()->get();
  if (value < key.low || value > key.high) {
    refuse(where, key.high == std::numeric_limits<int64_t>::max()
                      ? fmt::format("{} is {}; it must be at least {}", name, value, key.low)
                      : fmt::format("{} is {}; it must be between {} and {}", name, value, key.low,
                                    key.high));
  }
  *key.value = value;
}

void set_number(const NumberKey& key, const toml::node& node, const std::string& where,
                const std::string& name) {
  const auto value = node.value<double>();
  if (!node.is_number() || !value) {
    refuse(where, fmt::format("{} must be a number, not {}", name, seen_text(node)));
  }
  const bool inside = (key.open ? *value > key.low : *value >= key.low) && *value < key.high;
  if (!inside) {
    refuse(where, fmt::format("{} is {}; it must be {} {} and below {}", name, *value,
                              key.open ? "above" : "at least", key.low, key.high));
  }
  *key.value = *value;
}

void set_choice(const ChoiceKey& key, const toml::node& node, const std::string& where,
                const std::string& name) {
  const std::string value = node.is_string() ? node.as_string()->get() : seen_text(node);
  const auto found = std::find(key.names.begin(), key.names.end(), value);
  if (found == key.names.end()) {
    refuse(where, fmt::format("{} is \"{}\"; it must be one of {}", name, value,
                              fmt::join(key.names, ", ")));
  }
  key.set(static_cast<size_t>(found - key.names.begin()));
}

void set_key(const BoundKey& key, const toml::node& node, const std::string& where) {
  std::visit(Overloaded{[&](const IntegerKey& k) { set_integer(k, node, where, key.name); },
                        [&](const NumberKey& k) { set_number(k, node, where, key.name); },
                        [&](const ChoiceKey& k) { set_choice(k, node, where, key.name); },
                        [&](bool* k) {
                          if (!node.is_boolean()) {
                            refuse(where, fmt::format("{} must be true or false, not {}", key.name,
                                                      seen_text(node)));
                          }
                          *k = node.as_boolean()->get();
                        },
                        [&](std::string* k) {
                          if (!node.is_string()) {
                            refuse(where, fmt::format("{} must be text in quotes, not {}", key.name,
                                                      seen_text(node)));
                          }
                          *k = node.as_string()->get();
                        }},
             key.place);
}

std::string section_of(const std::string& name) {
  return name.substr(0, name.rfind('.'));
}
std::string leaf_of(const std::string& name) {
  return name.substr(name.rfind('.') + 1);
}

[[noreturn]] void unknown_key(const std::string& where, const std::string& name,
                              const std::vector<BoundKey>& keys) {
  const bool has_section = name.find('.') != std::string::npos;
  std::vector<std::string> here, anywhere, sections;
  for (const BoundKey& key : keys) {
    anywhere.push_back(leaf_of(key.name));
    if (has_section && section_of(key.name) == section_of(name)) here.push_back(leaf_of(key.name));
    if (sections.empty() || sections.back() != section_of(key.name)) {
      sections.push_back(section_of(key.name));
    }
  }
  std::string hint = "docs/config.md lists all keys";
  const std::string leaf = leaf_of(name);
  if (const auto near = nearest(leaf, here); !near.empty()) {
    hint = fmt::format("did you mean \"{}\"?", near);
  } else if (const auto section = has_section ? "" : nearest(name, sections); !section.empty()) {
    hint = fmt::format("did you mean the section [{}]?", section);
  } else if (const auto far = nearest(leaf, anywhere); !far.empty()) {
    const auto found = std::find(anywhere.begin(), anywhere.end(), far) - anywhere.begin();
    hint = fmt::format("did you mean \"{}\"?", keys[found].name);
  }
  refuse(where, fmt::format("unknown key \"{}\"{}; {}", leaf_of(name),
                            has_section ? fmt::format(" in [{}]", section_of(name)) : "", hint));
}

bool is_section(const std::string& name, const std::vector<BoundKey>& keys) {
  return std::any_of(keys.begin(), keys.end(),
                     [&](const BoundKey& key) { return key.name.starts_with(name + "."); });
}

template <typename Where>
void apply_table(Config& config, const toml::table& table, const std::string& prefix,
                 const std::vector<BoundKey>& keys, const Where& where) {
  for (const auto& [key, node] : table) {
    const std::string name = prefix + std::string(key.str());
    const std::string place = where(key.source());
    if (node.is_table() && is_section(name, keys)) {
      apply_table(config, *node.as_table(), name + ".", keys, where);
      continue;
    }
    const auto found =
        std::find_if(keys.begin(), keys.end(), [&](const BoundKey& k) { return k.name == name; });
    if (found == keys.end()) unknown_key(place, name, keys);
    set_key(*found, node, place);
    config.origin[name] = place;
  }
}

std::string where_set(const Config& config, const std::string& key) {
  const auto found = config.origin.find(key);
  return found == config.origin.end() ? "config" : found->second;
}

}  // namespace

std::vector<ConfigKey> config_keys() {
  Config defaults;
  std::vector<ConfigKey> out;
  for (const BoundKey& key : bind_keys(defaults)) {
    out.push_back({key.name, type_text(key), value_text(key), key.help});
  }
  return out;
}

Config parse_config(std::string_view text, const std::string& name) {
  Config config;
  toml::table table;
  try {
    table = toml::parse(text);
  } catch (const toml::parse_error& error) {
    refuse(fmt::format("{}:{}", name, error.source().begin.line),
           fmt::format("not valid TOML: {}", error.description()));
  }
  apply_table(config, table, "", bind_keys(config), [&](const toml::source_region& source) {
    return fmt::format("{}:{}", name, source.begin.line);
  });
  return config;
}

Config load_config(const std::filesystem::path& file, const std::vector<std::string>& settings) {
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored)) {
    refuse(file.string(), "there is no such config file");
  }
  if (std::filesystem::is_directory(file, ignored)) {
    refuse(file.string(),
           std::filesystem::exists(file / "config.toml", ignored)
               ? "is a run folder, not a config; its config.toml is one, and train --resume --out "
                 "goes on with it"
               : "is a folder, not a config; for a folder of data, rotrnn init writes one");
  }
  Config config = parse_config(read_file(file, kMaxTextBytes), file.string());
  for (const std::string& setting : settings) apply_setting(config, setting);
  check(config);
  return config;
}

Config default_config(const std::vector<std::string>& settings) {
  Config config = parse_config(kQuickstartToml, "quickstart");
  for (const std::string& setting : settings) apply_setting(config, setting);
  check(config);
  return config;
}

void apply_setting(Config& config, const std::string& setting) {
  const std::string where = "--set " + setting;
  const size_t equals = setting.find('=');
  if (equals == std::string::npos || equals == 0) {
    refuse(where, "expected key=value, such as training.steps=100");
  }
  const std::string name = setting.substr(0, equals), value = setting.substr(equals + 1);
  const auto keys = bind_keys(config);
  const auto found =
      std::find_if(keys.begin(), keys.end(), [&](const BoundKey& k) { return k.name == name; });
  if (found == keys.end()) unknown_key(where, name, keys);
  toml::table table;
  try {
    table = toml::parse("value = " + value);
  } catch (const toml::parse_error&) {
    table.insert_or_assign("value", value);  // bare words are text
  }
  if (table.size() != 1) refuse(where, "expected one value");
  if (std::holds_alternative<std::string*>(found->place) && !table["value"].is_string()) {
    table.insert_or_assign("value", value);
  }
  set_key(*found, *table.get("value"), where);
  config.origin[name] = where;
}

namespace {

// The target must fit the network's output.
void check_target(const Config& config) {
  const TaskTarget target = config.task.target;
  const ModelOptions& m = config.model;
  const bool per_token = target == TaskTarget::token_label || target == TaskTarget::forecast;
  if (per_token && m.pooling != Pooling::none) {
    refuse(where_set(config, "model.pooling"),
           fmt::format("task.target = \"{}\" needs an output for every step; set model.pooling = "
                       "\"none\"",
                       name_of(target)));
  }
  if (!per_token && m.pooling == Pooling::none) {
    refuse(where_set(config, "model.pooling"),
           "model.pooling = \"none\" gives an output for every token, but this task has one label "
           "for a sequence; use mean or last");
  }
  if (per_token && m.frontend.used()) {
    refuse(where_set(config, "frontend.kind"),
           fmt::format("task.target = \"{}\" wants an output for every step, and a front end makes "
                       "one token of several steps; set frontend.kind = \"none\"",
                       name_of(target)));
  }
  if (target == TaskTarget::forecast && m.bidirectional) {
    refuse(where_set(config, "model.bidirectional"),
           "a forecast must not see the future; set model.bidirectional = false");
  }
  if (config.task.validation_share + config.task.test_share >= 1) {
    refuse(
        where_set(config, "task.test_share"),
        fmt::format("task.validation_share and task.test_share are {} and {}; nothing is left to "
                    "train on",
                    config.task.validation_share, config.task.test_share));
  }
}

}  // namespace

void check(const Config& config) {
  const ModelOptions& m = config.model;
  const TrainingOptions& t = config.training;
  try {
    check_layers(m);
  } catch (const SettingError& error) {
    refuse(where_set(config, "model." + error.key()), error.what());
  }
  if (t.batch % t.accumulate != 0) {
    refuse(where_set(config, "training.accumulate"),
           fmt::format("training.accumulate = {} does not divide training.batch = {}", t.accumulate,
                       t.batch));
  }
  try {
    check_task(config.task);
  } catch (const std::invalid_argument& error) {
    refuse(where_set(config, "task.name"), error.what());
  }
  check_target(config);
}

std::string to_toml(const Config& config) {
  Config copy = config;
  std::string out, section;
  for (const BoundKey& key : bind_keys(copy)) {
    if (section_of(key.name) != section) {
      section = section_of(key.name);
      out += fmt::format("{}[{}]\n", out.empty() ? "" : "\n", section);
    }
    out += fmt::format("{} = {}\n", leaf_of(key.name), value_text(key));
  }
  return out;
}

std::string value_of(const Config& config, const std::string& key) {
  Config copy = config;
  for (const BoundKey& bound : bind_keys(copy)) {
    if (bound.name == key) return value_text(bound);
  }
  throw std::invalid_argument("config: there is no key " + key);
}

std::vector<std::string> differences(const Config& a, const Config& b) {
  Config copy_a = a, copy_b = b;
  const auto keys_a = bind_keys(copy_a), keys_b = bind_keys(copy_b);
  std::vector<std::string> names;
  for (size_t i = 0; i < keys_a.size(); ++i) {
    if (value_text(keys_a[i]) != value_text(keys_b[i])) names.push_back(keys_a[i].name);
  }
  return names;
}

}  // namespace rotrnn
