#pragma once

#include <cstddef>
#include <span>
#include <type_traits>

#include "rotrnn/kernels/maps/normalisation.h"
#include "rotrnn/spec/description.h"

/// RotRNN's parameter map, fused (docs/layers.md): parameters to a Diagonal (spec/description.h),
/// per head
///   γ = exp(-exp(gamma_log)),  P = expm(M - Mᵀ),  λ = γ·e^{iθ}
///   W = rows of ξPᵀB (even rows: re plane, odd: im plane),  V = columns of C P likewise
///   xi: ξ = sqrt(c(1-γ²)/‖B‖²);  alpha: α = 1/sqrt(cγ² + ‖B‖²) takes ξ's place and scales λ;
///   none: ξ = 1.
/// Odd dh: one more state with θ = 0, whose im row in W and im column in V are zero.
/// stationary: start = ((1-|λ|²)^{-½} - 1)/λ.
/// theta_log: what is given for θ is its logarithm.
/// All in double inside; Parameter (float or double) is the type of the parameters, T that of the
/// layer and of all gradients.
namespace rotrnn::kernels {

struct RotrnnMapSizes {
  size_t D = 0, N = 0, H = 0;
  bool bidirectional = false, stationary = false, theta_log = false;
  Normalisation normalisation = Normalisation::xi;
  double c = 1;
  int threads = 1;

  size_t head() const { return N / H; }
  size_t pairs() const { return (head() + 1) / 2; }  // complex states of a head
  size_t angles() const { return head() / 2; }
  size_t S() const { return H * pairs(); }
};

/// theta [H, dh/2], gamma_log [H], M [H, dh, dh], B [H, dh, D], C [D, N], C_reverse [D, N].
template <class T>
struct RotrnnParameters {
  T *theta = nullptr, *gamma_log = nullptr, *M = nullptr, *B = nullptr, *C = nullptr,
    *C_reverse = nullptr;
};

/// The map of one layer; P [H, dh, dh] is for backward.
template <class T, class Parameter = T>
struct RotrnnForward {
  RotrnnParameters<const Parameter> parameters;
  DiagonalFields<T*> layer;  // but D, b and e; start if stationary
  double* P;
};

/// Its derivative: gradients of the parameters, each overwritten, given those of the layer (those
/// of λ and start may be null: zero).
template <class T, class Parameter = T>
struct RotrnnBackward {
  RotrnnParameters<const Parameter> parameters;
  const double* P;
  DiagonalFields<const T*> dlayer;
  RotrnnParameters<T> dparameters;
};

/// Layers of equal sizes, threads over all their heads.
template <class T, class Parameter = T>
void rotrnn_map_forward(const RotrnnMapSizes& sizes,
                        std::type_identity_t<std::span<const RotrnnForward<T, Parameter>>> layers);
template <class T, class Parameter = T>
void rotrnn_map_backward(
    const RotrnnMapSizes& sizes,
    std::type_identity_t<std::span<const RotrnnBackward<T, Parameter>>> layers);

}  // namespace rotrnn::kernels
