#include "rotrnn/layers/lru/options.h"

#include <fmt/format.h>

#include <cmath>

#include "rotrnn/layers/lru/lru.h"

namespace rotrnn {

void check(const LruOptions& o, bool sizes) {
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
  if (!(0 <= o.r_min && o.r_min < o.r_max && o.r_max <= 1)) {
    fail("lru.r_min",
         fmt::format("r_min = {} and r_max = {}, but 0 <= r_min < r_max <= 1", o.r_min, o.r_max));
  }
  if (!(o.max_phase > 0 && std::isfinite(o.max_phase))) {
    fail("lru.max_phase", fmt::format("max_phase is {}; it must be above 0", o.max_phase));
  }
}

void check_lru(const LayerOptions& o, bool sizes) {
  check(o.lru_options(), sizes);
}

std::string describe_lru(const LayerOptions& o) {
  return fmt::format("state {} ({} complex)", o.state, o.state / 2);
}

}  // namespace rotrnn
