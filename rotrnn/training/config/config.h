#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "rotrnn/base/text/nearest.h"
#include "rotrnn/data/task.h"
#include "rotrnn/network/options.h"
#include "rotrnn/training/options.h"

namespace rotrnn {

/// Everything that decides a run.
struct Config {
  TaskOptions task;
  ModelOptions model;
  TrainingOptions training;

  /// Where a key was set, such as "configs/x.toml:12"; keys at their default are not in it.
  std::map<std::string, std::string> origin;
};

/// One documented key of a config.
struct ConfigKey {
  std::string name;           // such as "model.width"
  std::string type;           // "integer", "number", "true or false", "text" or the choices
  std::string default_value;  // as TOML
  std::string help;
};

/// All keys, in the order of the sections.
std::vector<ConfigKey> config_keys();

/// Reads TOML; std::invalid_argument with `name:line:` for anything that is wrong.
Config parse_config(std::string_view text, const std::string& name);

/// Reads a TOML file, then applies the settings "a.b=c" in their order, then checks the whole.
Config load_config(const std::filesystem::path& file, const std::vector<std::string>& settings);

/// The config that is built into the program: the quick start.
Config default_config(const std::vector<std::string>& settings);

/// Applies one setting "a.b=c"; a value that is not TOML is taken as text.
void apply_setting(Config& config, const std::string& setting);

/// Throws std::invalid_argument for invalid or inconsistent settings.
void check(const Config& config);

/// The whole config as TOML, defaults included; parse_config gives back the same.
std::string to_toml(const Config& config);

/// The value of a key, as TOML.
std::string value_of(const Config& config, const std::string& key);

/// Names of the keys in which two configs differ.
std::vector<std::string> differences(const Config& a, const Config& b);

}  // namespace rotrnn
