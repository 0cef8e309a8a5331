#pragma once

#include <vector>

#include "rotrnn/layers/layer.h"

namespace rotrnn {

/// The parameters of an LRU with S complex states, γ learned, in double.
struct LruParameters {
  int64_t width = 0, states = 0;                     // D, S
  std::vector<double> nu_log, theta_log, gamma_log;  // [S]
  std::vector<double> B_re, B_im;                    // [S, D]
  std::vector<double> C_re, C_im;                    // [D, S]
  std::vector<double> D;                             // [D]
  std::vector<double> C_reverse_re, C_reverse_im;    // [D, S], empty when unidirectional

  /// Calls f(name, values) for every one, by the names of the layer.
  template <class F>
  void each(const F& f) const {
    f("nu_log", nu_log), f("theta_log", theta_log), f("gamma_log", gamma_log);
    f("B_re", B_re), f("B_im", B_im), f("C_re", C_re), f("C_im", C_im), f("D", D);
    f("C_reverse_re", C_reverse_re), f("C_reverse_im", C_reverse_im);
  }
};

/// Gives a layer these parameters, such as those of to_lru(), rounded. std::invalid_argument when
/// the sizes, the direction or gamma = "fixed" do not fit; then nothing is changed.
void load_lru(const LayerOptions& options, const LruParameters& parameters,
              const LayerValues& values);

}  // namespace rotrnn
