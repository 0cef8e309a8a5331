#pragma once

#include <fmt/format.h>

#include <cmath>
#include <string>

#include "rotrnn/layers/setting_error.h"

namespace rotrnn {

/// What S4D and S4 check alike; `layer` is its name, `section` that of its keys.
template <typename Options>
void check_channel_options(const Options& o, bool sizes, const std::string& layer,
                           const std::string& section) {
  if (sizes && o.width < 1) {
    throw SettingError("width",
                       fmt::format("{}: width is {}; it must be at least 1", layer, o.width));
  }
  if (sizes && o.state < 2) {
    throw SettingError("state", fmt::format("{}: state is {}; its eigenvalues come in conjugate "
                                            "pairs, so it must be at least 2",
                                            layer, o.state));
  }
  if (!(0 < o.dt_min && o.dt_min <= o.dt_max && std::isfinite(o.dt_max))) {
    throw SettingError(section + ".dt_min",
                       fmt::format("{}: dt_min = {} and dt_max = {}, but 0 < dt_min <= dt_max",
                                   layer, o.dt_min, o.dt_max));
  }
}

}  // namespace rotrnn
