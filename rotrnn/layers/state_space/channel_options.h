#pragma once

#include <fmt/format.h>

#include <cmath>
#include <string>

#include "rotrnn/layers/layer_options.h"
#include "rotrnn/layers/setting_error.h"

namespace rotrnn {

/// The checks that S4D and S4 share. `steps` are the options of that layer, `name` is its name,
/// `section` that of its keys.
template <typename Options>
void check_channel_options(const LayerOptions& o, const Options& steps, bool sizes,
                           const std::string& name, const std::string& section) {
  if (sizes && o.width < 1) {
    throw SettingError("width",
                       fmt::format("{}: width is {}; it must be at least 1", name, o.width));
  }
  if (sizes && o.state < 2) {
    throw SettingError("state", fmt::format("{}: state is {}; its eigenvalues come in conjugate "
                                            "pairs, so it must be at least 2",
                                            name, o.state));
  }
  if (!(0 < steps.dt_min && steps.dt_min <= steps.dt_max && std::isfinite(steps.dt_max))) {
    throw SettingError(section + ".dt_min",
                       fmt::format("{}: dt_min = {} and dt_max = {}, but 0 < dt_min <= dt_max",
                                   name, steps.dt_min, steps.dt_max));
  }
}

}  // namespace rotrnn
