#pragma once

#include <memory>
#include <vector>

#include "rotrnn/fit/source.h"
#include "rotrnn/spec/frontend.h"

namespace rotrnn::fit {

/// Tokens of a front end of rotations in place of the samples, standardised per band on a sample of
/// the sequences.
struct Bands {
  Source source;
  std::vector<float> mean, deviation;  // [channels of a token]
};

/// `options` are resolved. The samples must live as long as the tokens are read.
Bands band_source(const Source& samples, const FrontendOptions& options, uint64_t seed,
                  int threads);

/// The same of other sequences, by what was learned.
Source band_source(const Source& samples, const FrontendOptions& options, const Bands& learned);

}  // namespace rotrnn::fit
