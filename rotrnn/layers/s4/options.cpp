#include "rotrnn/layers/s4/s4.h"

#include "rotrnn/layers/s4d/s4d.h"
#include "rotrnn/layers/state_space/channel_options.h"

namespace rotrnn {

void check_s4(const LayerOptions& o, bool sizes) {
  check_channel_options(o, o.s4, sizes, "S4", "s4");
  if (o.s4.max_length < 0) {
    throw SettingError("s4.max_length",
                       fmt::format("S4: max_length is {}; give a length, or 0 to take the longest "
                                   "sequence of the data",
                                   o.s4.max_length));
  }
}

std::string describe_s4(const LayerOptions& o) {
  return describe_s4d(o);
}

}  // namespace rotrnn
