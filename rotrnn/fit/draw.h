#pragma once

#include <cstdint>
#include <vector>

#include "rotrnn/fit/source.h"
#include "rotrnn/kernels/features/feature_bank.h"

namespace rotrnn::fit {

/// What a bank is drawn for.
struct BankOptions {
  size_t states = 1024;  // rounded up to whole groups
  uint64_t seed = 0;
  bool differences = true;
  size_t neighbours = 0;  // 0: pairs of inputs; 3: three neighbouring channels, of the bands below
  size_t bands = 0;       // channels that belong together, with neighbours
};

/// Draws a bank for the sequences, of which some are read:
///
///     θ   log-uniform in [π/L, π], a tenth of them 0; L the median length
///     τ   log-uniform in [1.5, L/2], then at least U(0.9, 4.5)/θ, at most L;  γ = exp(-1/τ)
///     w   normal, over the inputs of the group, each in units of its deviation;
///         times √(1-γ²)·e^{iφ}, φ uniform
///     c   random quantiles (0.03 to 0.97) of v
kernels::FeatureBank draw_bank(const BankOptions& options, const Source& source, int threads);

}  // namespace rotrnn::fit
