#pragma once

#include <cstdint>
#include <span>

#include "rotrnn/data/records.h"
#include "rotrnn/spec/preprocess.h"

// Preprocessing that is learned on train.

namespace rotrnn {

/// A text's characters that occur `min_frequency` times or more in the sequences of these examples,
/// by code point, after the three special tokens.
Preprocessing learn_characters(const Records& records, std::span<const int64_t> train,
                               int64_t min_frequency, int64_t max_length);

/// Mean and standard deviation of every channel over all steps of these examples; with `per_step`,
/// over the examples for every step (shorter ones count as 0 there) with 1e-5 added to the latter,
/// as the public code for Speech Commands does.
Preprocessing learn_scale(const Records& records, std::span<const int64_t> train, bool per_step,
                          int64_t max_length);

}  // namespace rotrnn
