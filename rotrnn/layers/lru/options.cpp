#include "rotrnn/layers/lru/lru.h"

#include <fmt/format.h>

#include <cmath>

namespace rotrnn {

void check_lru(const LayerOptions& o, bool sizes) {
  auto fail = [](const char* key, const std::string& what) {
    throw SettingError(key, "LRU: " + what);
  };
  if (sizes && o.width < 1) {
    fail("width", fmt::format("width is {}; it must be at least 1", o.width));
  }
  if (sizes && (o.state < 2 || o.state % 2 != 0)) {
    fail("state", fmt::format("state is {}; it counts real dimensions, two for a complex state, so "
                              "it must be even and at least 2",
                              o.state));
  }
  if (!(0 <= o.lru.r_min && o.lru.r_min < o.lru.r_max && o.lru.r_max <= 1)) {
    fail("lru.r_min", fmt::format("r_min = {} and r_max = {}, but 0 <= r_min < r_max <= 1",
                                  o.lru.r_min, o.lru.r_max));
  }
  if (!(o.lru.max_phase > 0 && std::isfinite(o.lru.max_phase))) {
    fail("lru.max_phase", fmt::format("max_phase is {}; it must be above 0", o.lru.max_phase));
  }
}

std::string describe_lru(const LayerOptions& o) {
  return fmt::format("state {} ({} complex)", o.state, o.complex_states());
}

}  // namespace rotrnn
