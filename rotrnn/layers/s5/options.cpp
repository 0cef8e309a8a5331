#include "rotrnn/layers/s5/s5.h"

#include <fmt/format.h>

#include <cmath>

namespace rotrnn {
namespace {

[[noreturn]] void refuse_s5(const char* key, const std::string& what) {
  throw SettingError(key, "S5: " + what);
}

void check_s5_sizes(const LayerOptions& o) {
  if (o.width < 1) refuse_s5("width", fmt::format("width is {}; it must be at least 1", o.width));
  if (o.state < 2 || o.state % 2 != 0) {
    refuse_s5("state",
              fmt::format("state is {}; its eigenvalues come in conjugate pairs, so it must be "
                          "even and at least 2",
                          o.state));
  }
  if (o.state % o.s5.blocks != 0 || o.state / o.s5.blocks % 2 != 0) {
    refuse_s5("s5.blocks", fmt::format("blocks = {} does not cut state = {} into blocks of an even "
                                       "size; state must be a multiple of 2 · blocks",
                                       o.s5.blocks, o.state));
  }
}

}  // namespace

void check_s5(const LayerOptions& o, bool sizes) {
  if (o.s5.blocks < 1) {
    refuse_s5("s5.blocks", fmt::format("blocks is {}; it must be at least 1", o.s5.blocks));
  }
  if (sizes) check_s5_sizes(o);
  if (!(0 < o.s5.dt_min && o.s5.dt_min <= o.s5.dt_max && std::isfinite(o.s5.dt_max))) {
    refuse_s5("s5.dt_min", fmt::format("dt_min = {} and dt_max = {}, but 0 < dt_min <= dt_max",
                                       o.s5.dt_min, o.s5.dt_max));
  }
  if (!(o.s5.step_rescale > 0 && std::isfinite(o.s5.step_rescale))) {
    refuse_s5("s5.step_rescale",
              fmt::format("step_rescale is {}; it must be above 0", o.s5.step_rescale));
  }
}

std::string describe_s5(const LayerOptions& o) {
  return fmt::format("state {} in {} HiPPO blocks ({} complex)", o.state, o.s5.blocks,
                     o.complex_states());
}

}  // namespace rotrnn
