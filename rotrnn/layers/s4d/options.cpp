#include "rotrnn/layers/s4d/options.h"

#include "rotrnn/layers/s4d/s4d.h"
#include "rotrnn/layers/state_space/channel_options.h"

namespace rotrnn {

void check(const S4DOptions& o, bool sizes) {
  check_channel_options(o, sizes, "S4D", "s4d");
  if (!(o.step_rescale > 0 && std::isfinite(o.step_rescale))) {
    throw SettingError("s4d.step_rescale",
                       fmt::format("S4D: step_rescale is {}; it must be above 0", o.step_rescale));
  }
}

void check_s4d(const LayerOptions& o, bool sizes) {
  check(o.s4d_options(), sizes);
}

std::string describe_s4d(const LayerOptions& o) {
  return fmt::format("state {} in every channel ({} complex)", o.state, o.state / 2);
}

}  // namespace rotrnn
