#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rotrnn/base/enum_names.h"

namespace rotrnn {

/// What turns raw samples into the tokens that a network reads.
enum class FrontendKind {
  none,       // each sample is a token
  patch,      // `size` consecutive samples of all channels are the channels of one token
  rotations,  // log powers of decayed rotations, one number per channel and band
};

template <>
inline constexpr std::array kNames<FrontendKind>{"none", "patch", "rotations"};

/// Added to powers before their logarithm.
inline constexpr double kPowerFloor = 1e-7;

/// The settings of [frontend] in a config. 0 means automatic (resolve_frontend).
struct FrontendOptions {
  FrontendKind kind = FrontendKind::none;
  // rotations
  int64_t hop = 0;           // samples per token
  int64_t bands = 64;        // rotations per channel
  double low = 0, high = 0;  // centres of the first and the last band: Hz, or cycles per step
  bool learn = false;        // whether θ and γ are trained
  // patch
  int64_t size = 0;    // samples of one token
  int64_t stride = 0;  // samples from one token to the next
  // Not a setting: samples per second of the data, 0 where they have no rate.
  double rate = 0;

  bool used() const { return kind != FrontendKind::none; }
};

/// The rotations z_t = γ·e^{iθ}·z_{t-1} + √(1-γ²)·x_t of the bands, with γ = exp(-exp(gamma_log)).
struct FrontendRotations {
  std::vector<double> theta, gamma_log;
};

/// The same with every 0 replaced and the rate set, that of the samples (per second; 0: not known):
///
///     hop     10 ms; 16 without a rate      low    60/16000 cycles per step
///     size    16                            high   7700/16000 cycles per step
///     stride  size
///
/// std::invalid_argument for invalid settings.
FrontendOptions resolve_frontend(const FrontendOptions& options, double rate);

/// In words: "64 rotations per channel from 60 to 7700 Hz, one token per 160 samples". Resolved,
/// but low and high may be missing.
std::string describe_frontend(const FrontendOptions& options);

/// Tokens of a sequence of that many samples (at least one). A last partial hop or patch counts
/// only when it is the only one. Options are resolved, here and below.
int64_t frontend_tokens(const FrontendOptions& options, int64_t samples);

/// Tokens that are complete after that many samples of a sequence that goes on.
int64_t frontend_complete(const FrontendOptions& options, int64_t samples);

/// Samples that must have arrived until token j is complete; a sequence may end earlier when j is
/// its only one.
int64_t frontend_samples(const FrontendOptions& options, int64_t token);

/// Channels of a token, for that many of a sample.
int64_t frontend_channels(const FrontendOptions& options, int64_t channels);

/// Offsets of the tokens of packed sequences, [sequences + 1], from those of their samples.
void frontend_offsets(const FrontendOptions& options, const int64_t* samples, int64_t sequences,
                      std::vector<int64_t>& tokens);

/// Frequencies in geometric progression from low to high, f in cycles per step; bandwidths
/// b = f/8 + 25/16000, so that bands overlap as an ear's do; θ = 2πf, γ = exp(-2πb).
FrontendRotations frontend_rotations(const FrontendOptions& options);

}  // namespace rotrnn
