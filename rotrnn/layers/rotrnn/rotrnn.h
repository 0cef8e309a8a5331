#pragma once

#include "rotrnn/layers/layer.h"

namespace rotrnn {

/// RotRNN (Biegun, Dolga, Cunningham, Barber 2024): a linear recurrence whose state matrix is a
/// learned rotation, so that the state neither explodes nor vanishes.
///
///     x_t = γ_h P_h Θ_h P_hᵀ x_{t-1} + ξ_h B_h u_t            for every head h
///     y_t = C · concat_h(x_t) + D ⊙ u_t
///     P_h = expm(M_h - M_hᵀ),   γ_h = exp(-exp(gamma_log_h)),   ξ_h = √((1 - γ_h²) / ‖B_h‖²_F)
///
/// Parameters: theta [H, ⌊dh/2⌋] (theta_log when stored as its logarithm), gamma_log [H],
/// M [H, dh, dh] (a buffer of zeros unless learn_rotation), B [H, dh, D], C [D, N], D [D], and
/// C_reverse [D, N] when bidirectional.
///
/// With z = Pᵀx, P leaves the recurrence: z_t = γΘ z_{t-1} + (ξ PᵀB) u_t and y_t = (C P) z_t. The
/// map (kernels/maps/rotrnn_map.h) does this in double: a float32 matrix exponential loses
/// orthogonality, and 1 - γ² loses its digits when γ is near 1.
void check_rotrnn(const LayerOptions& options, bool sizes);
std::string describe_rotrnn(const LayerOptions& options);

TensorSpecs rotrnn_tensors(const LayerOptions& options);
void draw_rotrnn(const LayerOptions& options, uint64_t seed, uint64_t stream,
                 const LayerValues& out);
void map_rotrnn(const MapRequest& request, std::span<Description<double>> out, MapTrace& trace);
void map_rotrnn_backward(const MapRequest& request, const MapTrace& trace,
                         std::span<const Description<double>> gradients,
                         std::span<const Views<double>> out);

Recurrence recurrence_rotrnn(const LayerOptions& options, const LayerValues& values, bool outputs);
LayerStates states_rotrnn(const LayerOptions& options);

}  // namespace rotrnn
