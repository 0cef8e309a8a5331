#include "rotrnn/layers/s4/options.h"

#include "rotrnn/layers/s4/s4.h"
#include "rotrnn/layers/s4d/s4d.h"
#include "rotrnn/layers/state_space/channel_options.h"

namespace rotrnn {

void check(const S4Options& o, bool sizes) {
  check_channel_options(o, sizes, "S4", "s4");
  if (o.max_length < 0) {
    throw SettingError("s4.max_length",
                       fmt::format("S4: max_length is {}; give a length, or 0 to take the longest "
                                   "sequence of the data",
                                   o.max_length));
  }
}

void check_s4(const LayerOptions& o, bool sizes) {
  check(o.s4_options(), sizes);
}

std::string describe_s4(const LayerOptions& o) {
  return describe_s4d(o);
}

}  // namespace rotrnn
