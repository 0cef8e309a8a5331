#pragma once

#include <cstdint>
#include <numbers>

#include "rotrnn/base/enum_names.h"
#include "rotrnn/kernels/maps/normalisation.h"

namespace rotrnn {

using kernels::Normalisation;

/// Whole sets of initial values; `automatic` choices of RotRNNInit follow it.
enum class InitPreset { paper, authors };
template <>
inline constexpr std::array kNames<InitPreset>{"paper", "authors"};
/// Distribution of γ: uniform on the ring between the radii, or uniform in log(-log γ).
enum class GammaInit { automatic, ring, log_uniform };
template <>
inline constexpr std::array kNames<GammaInit>{"automatic", "ring", "log_uniform"};
/// Whether θ itself is the parameter, or its logarithm.
enum class ThetaForm { automatic, plain, log };
template <>
inline constexpr std::array kNames<ThetaForm>{"automatic", "plain", "log"};
/// Standard deviation of a matrix at the start: by its own fan-in, or as in the authors' code.
enum class MatrixInit { automatic, paper, authors };
template <>
inline constexpr std::array kNames<MatrixInit>{"automatic", "paper", "authors"};

/// Initial values of a RotRNN layer.
struct RotRNNInit {
  InitPreset preset = InitPreset::paper;
  double gamma_min = 0.5, gamma_max = 0.999;
  double theta_max = std::numbers::pi / 100;
  GammaInit gamma_init = GammaInit::automatic;
  ThetaForm theta_form = ThetaForm::automatic;
  MatrixInit bc_init = MatrixInit::automatic;  // B and C
  MatrixInit m_init = MatrixInit::automatic;   // M

  /// The same options with every `automatic` replaced by the preset's.
  RotRNNInit resolved() const {
    RotRNNInit r = *this;
    const bool paper = preset == InitPreset::paper;
    const auto matrix = paper ? MatrixInit::paper : MatrixInit::authors;
    if (r.gamma_init == GammaInit::automatic) {
      r.gamma_init = paper ? GammaInit::ring : GammaInit::log_uniform;
    }
    if (r.theta_form == ThetaForm::automatic) {
      r.theta_form = paper ? ThetaForm::plain : ThetaForm::log;
    }
    if (r.bc_init == MatrixInit::automatic) r.bc_init = matrix;
    if (r.m_init == MatrixInit::automatic) r.m_init = matrix;
    return r;
  }
};

/// Settings of a RotRNN layer.
struct RotRNNOptions {
  int64_t heads = 32;  // H, divides N; dh = N / H is at least 2
  Normalisation normalisation = Normalisation::xi;
  double c = 1;                   // the mean square norm that the normalisation aims at
  bool stationary_start = false;  // E‖x_t‖² = c from the first step on
  bool learn_rotation = true;     // false: P stays the identity
  RotRNNInit init;

  int64_t head_size(int64_t state) const { return state / heads; }  // dh
};

}  // namespace rotrnn
