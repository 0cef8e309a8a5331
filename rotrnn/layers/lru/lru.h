#pragma once

#include "rotrnn/layers/layer.h"

namespace rotrnn {

/// LRU (Orvieto, Smith, Gu, Fernando, Gulcehre, Pascanu, De 2023): a complex diagonal recurrence
/// whose radius and phase are learned.
///
///     λ = exp(-e^{nu_log} + i·e^{theta_log})
///     x_t = λ ⊙ x_{t-1} + e^{gamma_log} ⊙ (B u_t)        y_t = Re(C x_t) + D ⊙ u_t
///
/// Parameters: nu_log, theta_log, gamma_log [S], B_re, B_im [S, D], C_re, C_im [D, S], D [D], and
/// C_reverse_re, C_reverse_im [D, S] when bidirectional. With gamma = "fixed" there is no
/// gamma_log, and √(1 - |λ|²) takes the place of its exponential.
void check_lru(const LayerOptions& options, bool sizes);
std::string describe_lru(const LayerOptions& options);

TensorSpecs lru_tensors(const LayerOptions& options);
void draw_lru(const LayerOptions& options, uint64_t seed, uint64_t stream, const LayerValues& out);
void map_lru(const MapRequest& request, std::span<Description<double>> out, MapTrace& trace);
void map_lru_backward(const MapRequest& request, const MapTrace& trace,
                      std::span<const Description<double>> gradients,
                      std::span<const Views<double>> out);

Recurrence recurrence_lru(const LayerOptions& options, const LayerValues& values, bool outputs);
LayerStates states_lru(const LayerOptions& options);

}  // namespace rotrnn
