#pragma once

#include "rotrnn/layers/layer.h"

/// Liquid-S4 (Hasani et al. 2022): S4 with correlation terms, x_t = (Ā + diag(B̄)u_t)x_{t-1} + B̄u_t
/// taken apart by the number p = 2 … degree of inputs in a product.
///
///     b_n = ΔB_n/(1 - ΔΛ_n/2),    s = 2Re Σ_n b_n
///     pb: y_t += Σ_p c_p·Π_{j<p} u_{t-j}
///         coefficient "power":      c_p = 2Re Σ_n C_n b_n^p
///         coefficient "reference":  c_p = s^(2^(p-1) - 1)·2Re Σ_n C_n b_n
///         mode "reference", not causal: of the p-combinations of the last w inputs of a sequence
///         of T in lexicographic order the last T, w < T being the smallest number that has as
///         many; the t-th from the end joins y_t
///     kb: y_t += Σ_p s^(p-1) Σ_l K_l Π_{j<p} u_{t-l-j}
///
/// u is 0 before the start. Parameters and buffers are those of S4, but Im B is not clipped.
/// Bidirectional: the terms are those of the forward direction.
namespace rotrnn {

void check_liquid_s4(const LayerOptions& options, bool sizes);
std::string describe_liquid_s4(const LayerOptions& options);

TensorSpecs liquid_s4_tensors(const LayerOptions& options);
void draw_liquid_s4(const LayerOptions& options, uint64_t seed, uint64_t stream,
                    const LayerValues& out);
void prepare_liquid_s4(const LayerOptions& options, const LayerValues& values, int64_t longest);

/// A Channel with kernels and products: c_p, or in form kb s^(p-1).
void map_liquid_s4(const MapRequest& request, std::span<Description<double>> out, MapTrace& trace);
void map_liquid_s4_backward(const MapRequest& request, const MapTrace& trace,
                            std::span<const Description<double>> gradients,
                            std::span<const Views<double>> out);

Recurrence recurrence_liquid_s4(const LayerOptions& options, const LayerValues& values,
                                bool outputs);
LayerStates states_liquid_s4(const LayerOptions& options);

}  // namespace rotrnn
