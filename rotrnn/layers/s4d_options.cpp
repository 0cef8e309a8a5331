#include "rotrnn/layers/s4d_options.h"

#include <fmt/format.h>

#include <cmath>

#include "rotrnn/layers/registry.h"

namespace rotrnn {
namespace {

[[noreturn]] void fail(const char* key, const std::string& what) {
  throw SettingError(key, "S4D: " + what);
}

}  // namespace

void check(const S4DOptions& o, bool sizes) {
  if (sizes && o.width < 1) {
    fail("width", fmt::format("width is {}; it must be at least 1", o.width));
  }
  if (sizes && o.state < 2) {
    fail("state", fmt::format("state is {}; its eigenvalues come in conjugate pairs, so it must be "
                              "at least 2",
                              o.state));
  }
  if (!(0 < o.dt_min && o.dt_min <= o.dt_max && std::isfinite(o.dt_max))) {
    fail("s4d.dt_min",
         fmt::format("dt_min = {} and dt_max = {}, but 0 < dt_min <= dt_max", o.dt_min, o.dt_max));
  }
  if (!(o.step_rescale > 0 && std::isfinite(o.step_rescale))) {
    fail("s4d.step_rescale", fmt::format("step_rescale is {}; it must be above 0", o.step_rescale));
  }
}

void check_s4d(const LayerOptions& o, bool sizes) {
  check(o.s4d_options(), sizes);
}

std::string describe_s4d(const LayerOptions& o) {
  return fmt::format("state {} in every channel ({} complex)", o.state, o.state / 2);
}

}  // namespace rotrnn
