#pragma once

#include <numbers>

#include "tests/layers/double_layer.h"

namespace rotrnn::testing {

struct Variant {
  std::string name;
  LayerOptions options;

  /// A layer in double; of a clipping S5 the first state is outside the bound.
  DoubleLayer layer(uint64_t seed = 1) const {
    DoubleLayer made(options, seed);
    if (options.layer == "s5" && options.s5.clip) made.of("Lambda_re")[0] = 0.3f;
    return made;
  }
};

/// Every branch of the maps that show states, forward and in both directions.
inline std::vector<Variant> state_variants() {
  std::vector<Variant> out;
  const auto add = [&](const std::string& name, const char* layer, auto change) {
    for (const bool bidirectional : {false, true}) {
      LayerOptions o;
      o.layer = layer;
      o.width = 3;
      o.state = 8;
      o.rotrnn.heads = 2;
      o.s5.blocks = 2;
      o.rotrnn.init.theta_max = 2 * std::numbers::pi;
      o.bidirectional = bidirectional;
      change(o);
      out.push_back({name + (bidirectional ? ", both directions" : ""), o});
    }
  };
  add("rotrnn", "rotrnn", [](LayerOptions&) {});
  add("rotrnn, odd heads, theta_log", "rotrnn", [](LayerOptions& o) {
    o.state = 10;
    o.rotrnn.init.theta_form = ThetaForm::log;
  });
  add("rotrnn, stationary start", "rotrnn",
      [](LayerOptions& o) { o.rotrnn.stationary_start = true; });
  add("rotrnn, alpha", "rotrnn", [](LayerOptions& o) {
    o.rotrnn.normalisation = Normalisation::alpha;
    o.rotrnn.c = 2.5;
  });
  add("rotrnn, not normalised, no rotation", "rotrnn", [](LayerOptions& o) {
    o.rotrnn.normalisation = Normalisation::none;
    o.rotrnn.learn_rotation = false;
  });
  add("lru learned", "lru", [](LayerOptions& o) { o.lru.r_min = 0.4; });
  add("lru fixed", "lru", [](LayerOptions& o) { o.lru.gamma = LruGamma::fixed; });
  add("s5 zoh", "s5", [](LayerOptions&) {});
  add("s5 bilinear", "s5", [](LayerOptions& o) { o.s5.discretisation = Discretisation::bilinear; });
  add("s5 rescaled, large steps", "s5", [](LayerOptions& o) {
    o.s5.step_rescale = 2;
    o.s5.dt_max = 1;
    o.s5.c_init = S5CInit::complex_normal;
  });
  add("s5 clipped", "s5", [](LayerOptions& o) {
    o.s5.clip = true;
    o.s5.blocks = 1;
    o.s5.c_init = S5CInit::trunc_standard_normal;
  });
  add("s4d", "s4d", [](LayerOptions&) {});
  add("s4d, tied, bilinear", "s4d", [](LayerOptions& o) {
    o.s4d.tied = true;
    o.s4d.discretisation = Discretisation::bilinear;
    o.s4d.init = S4DInit::lin;
  });
  return out;
}

}  // namespace rotrnn::testing
