#pragma once

#include "rotrnn/layers/layer.h"

namespace rotrnn {

/// S4D (Gu, Gupta, Goel, Ré 2022): every channel is a state-space model of its own with a diagonal
/// state matrix, one complex state for each conjugate pair.
///
///     x_t = Λ̄ ⊙ x_{t-1} + B̄ u_t                         y_t = 2·Re(C x_t) + D u_t
///     Λ = -exp(A_log_re) + i·A_im,    Δ = step_rescale·exp(log_step),    Λ̄ and B̄ as discretise()
///     has them
///
/// Bidirectional: a second C reads the states that come back from the next sample on.
///
/// Parameters, with H = D, or 1 when tied: A_log_re, A_im [H, N/2], B_re, B_im [H, N/2] (buffers
/// unless train_b), C_re, C_im [D, N/2], D [D], log_step [D], and C_reverse_re, C_reverse_im
/// [D, N/2] when bidirectional. The map divides x by B̄, which goes into c = 2·C·B̄.
void check_s4d(const LayerOptions& options, bool sizes);
std::string describe_s4d(const LayerOptions& options);

TensorSpecs s4d_tensors(const LayerOptions& options);
void draw_s4d(const LayerOptions& options, uint64_t seed, uint64_t stream, const LayerValues& out);
void map_s4d(const MapRequest& request, std::span<Description<double>> out, MapTrace& trace);
void map_s4d_backward(const MapRequest& request, const MapTrace& trace,
                      std::span<const Description<double>> gradients,
                      std::span<const Views<double>> out);

Recurrence recurrence_s4d(const LayerOptions& options, const LayerValues& values, bool outputs);
LayerStates states_s4d(const LayerOptions& options);

}  // namespace rotrnn
