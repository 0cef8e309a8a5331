#pragma once

#include "rotrnn/layers/layer.h"

namespace rotrnn {

/// S5 (Smith, Warrington, Linderman 2023): a continuous state-space model that starts as HiPPO-N
/// in its eigenbasis, one complex state for each conjugate pair, discretised by a learned time
/// step for each state.
///
///     x_t = Λ̄ ⊙ x_{t-1} + B̄ u_t                         y_t = 2·Re(C x_t) + D ⊙ u_t
///     zoh:       Λ̄ = e^{ΛΔ},                   B̄ = (e^{ΛΔ} - 1)/Λ · B
///     bilinear:  Λ̄ = (1 + ΔΛ/2)/(1 - ΔΛ/2),    B̄ = Δ/(1 - ΔΛ/2) · B
///     Δ = step_rescale · e^{log_step}
///
/// Parameters, with S = P/2: Lambda_re, Lambda_im, log_step [S], B_re, B_im [S, D], C_re, C_im
/// [D, S], D [D], and C_reverse_re, C_reverse_im [D, S] when bidirectional.
void check_s5(const LayerOptions& options, bool sizes);
std::string describe_s5(const LayerOptions& options);

TensorSpecs s5_tensors(const LayerOptions& options);
void draw_s5(const LayerOptions& options, uint64_t seed, uint64_t stream, const LayerValues& out);
void map_s5(const MapRequest& request, std::span<Description<double>> out, MapTrace& trace);
void map_s5_backward(const MapRequest& request, const MapTrace& trace,
                     std::span<const Description<double>> gradients,
                     std::span<const Views<double>> out);

Recurrence recurrence_s5(const LayerOptions& options, const LayerValues& values, bool outputs);
LayerStates states_s5(const LayerOptions& options);

}  // namespace rotrnn
