#include "rotrnn/layers/s4d/s4d.h"

#include "rotrnn/layers/state_space/channel_options.h"

namespace rotrnn {

void check_s4d(const LayerOptions& o, bool sizes) {
  check_channel_options(o, o.s4d, sizes, "S4D", "s4d");
  if (!(o.s4d.step_rescale > 0 && std::isfinite(o.s4d.step_rescale))) {
    throw SettingError(
        "s4d.step_rescale",
        fmt::format("S4D: step_rescale is {}; it must be above 0", o.s4d.step_rescale));
  }
}

std::string describe_s4d(const LayerOptions& o) {
  return fmt::format("state {} in every channel ({} complex)", o.state, o.complex_states());
}

}  // namespace rotrnn
