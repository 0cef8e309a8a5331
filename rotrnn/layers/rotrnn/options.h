#pragma once

#include <cstdint>
#include <numbers>

namespace rotrnn {

/// How the input is scaled against the memory of the state: see docs/layers.md.
enum class Normalisation { xi, alpha, none };

/// Whole sets of initial values; `automatic` choices of InitOptions follow it.
enum class InitPreset { paper, authors };
/// Distribution of γ: uniform on the ring between the radii, or uniform in log(-log γ).
enum class GammaInit { automatic, ring, log_uniform };
/// Whether θ itself is the parameter, or its logarithm.
enum class ThetaForm { automatic, plain, log };
/// Deviation of a matrix at the start: by its own fan-in, or as in the authors' code.
enum class MatrixInit { automatic, paper, authors };

/// Initial values of a RotRNN layer.
struct InitOptions {
  InitPreset preset = InitPreset::paper;
  double gamma_min = 0.5, gamma_max = 0.999;
  double theta_max = std::numbers::pi / 100;
  GammaInit gamma_init = GammaInit::automatic;
  ThetaForm theta_form = ThetaForm::automatic;
  MatrixInit bc_init = MatrixInit::automatic;  // B and C
  MatrixInit m_init = MatrixInit::automatic;   // M

  /// The same options with every `automatic` replaced by what the preset says.
  InitOptions resolved() const {
    InitOptions r = *this;
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

/// Sizes and settings of a RotRNN layer.
struct RotRNNOptions {
  int64_t width = 128;  // D
  int64_t state = 256;  // N
  int64_t heads = 32;   // H, divides N; dh = N / H is at least 2
  bool bidirectional = false;
  Normalisation normalisation = Normalisation::xi;
  double c = 1;                   // the mean square norm that the normalisation aims at
  bool stationary_start = false;  // E‖x_t‖² = c from the first step on
  bool learn_rotation = true;     // false: P stays the identity
  InitOptions init = {};

  int64_t head_size() const { return state / heads; }  // dh
};

/// Throws SettingError when the settings cannot be. Without `sizes`, width, state and heads are
/// left out: a config shares them with other layers.
void check(const RotRNNOptions& options, bool sizes = true);

}  // namespace rotrnn
