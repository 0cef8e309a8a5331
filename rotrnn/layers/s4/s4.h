#pragma once

#include "rotrnn/layers/layer.h"

/// S4 (Gu, Goel, Ré 2022): every channel is a state-space model of its own, whose state matrix is
/// diagonal plus low rank, run as a convolution.
///
///     x_t = Ā x_{t-1} + B̄ u_t    y_t = 2·Re(C x_t) + D u_t    K_l = 2·Re(C Ā^l B̄)
///     A = Λ - PP*,    Λ = -exp(A_log_re) + i·A_im,    Δ = exp(log_step),    bilinear rule
///
/// The parameter is C̃ = C(1 - Ā^L), from which K comes without powers of Ā (dplr.h). L is kept with
/// the layer; a longer sequence makes C̃ ← C̃(1 + Ā^L), L ← 2L until it fits, which is the same
/// layer. As long as L is 0, C itself is kept, and the first batch's longest sequence becomes L.
///
/// Bidirectional: a second C reads the states that come back from the next sample on.
///
/// Parameters, with H = D, or 1 when tied: A_log_re, A_im, P_re, P_im, B_re, B_im [H, n],
/// C_re, C_im [D, n] (C̃), D, log_step [D], and C_reverse_re, C_reverse_im [D, n] when
/// bidirectional; n = ⌊N/2⌋. Buffer: length, which is L.
namespace rotrnn {

void check_s4(const LayerOptions& options, bool sizes);
std::string describe_s4(const LayerOptions& options);

TensorSpecs s4_tensors(const LayerOptions& options);
void draw_s4(const LayerOptions& options, uint64_t seed, uint64_t stream, const LayerValues& out);

/// Makes L at least `longest`. Changes C̃ and L, but not what the layer computes.
void prepare_s4(const LayerOptions& options, const LayerValues& values, int64_t longest);

/// A Channel with kernels.
void map_s4(const MapRequest& request, std::span<Description<double>> out, MapTrace& trace);
void map_s4_backward(const MapRequest& request, const MapTrace& trace,
                     std::span<const Description<double>> gradients,
                     std::span<const Views<double>> out);

/// With the factors of DiscreteDplr: p = -F, q = 2G, b = B̄, c = 2C.
Recurrence recurrence_s4(const LayerOptions& options, const LayerValues& values, bool outputs);
LayerStates states_s4(const LayerOptions& options);

}  // namespace rotrnn
