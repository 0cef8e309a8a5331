#pragma once

#include <cstdint>
#include <numbers>

namespace rotrnn {

/// Whether the scale of an LRU's input is a parameter, or computed from λ in every pass.
enum class LruGamma { learned, fixed };

/// Sizes and settings of an LRU layer.
struct LruOptions {
  int64_t width = 128;  // D
  int64_t state = 256;  // N = 2S, even
  bool bidirectional = false;
  double r_min = 0, r_max = 1;              // |λ| at the start
  double max_phase = 2 * std::numbers::pi;  // largest arg λ at the start
  LruGamma gamma = LruGamma::learned;

  int64_t states() const { return state / 2; }  // S
};

/// Throws SettingError when the settings cannot be. Without `sizes`, width and state are left out:
/// a config shares them with other layers.
void check(const LruOptions& options, bool sizes = true);

}  // namespace rotrnn
