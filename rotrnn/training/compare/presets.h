#pragma once

#include <string>
#include <vector>

namespace rotrnn {

/// One of the variants that are compared: a name, and what it changes in the config.
struct Variant {
  std::string name;
  std::vector<std::string> settings;  // such as "model.heads=8"
};

/// A ready-made set of variants of RotRNN.
struct Preset {
  std::string name, summary;
  std::vector<Variant> variants;
  bool skip_unfit = false;  // leave out variants that do not fit the config's sizes
};

/// Every preset there is.
const std::vector<Preset>& presets();

/// A preset by its name; std::invalid_argument names them all.
const Preset& find_preset(const std::string& name);

}  // namespace rotrnn
