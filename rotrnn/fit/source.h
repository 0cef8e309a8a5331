#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "rotrnn/kernels/features/bank.h"

namespace rotrnn::fit {

/// Some sequences, packed: values [rows, channels] and where each begins.
struct Block {
  std::vector<float> values;
  std::vector<size_t> offsets{0};

  size_t sequences() const { return offsets.size() - 1; }
  kernels::BankSequence sequence(size_t i, size_t channels) const {
    return {values.data() + offsets[i] * channels, offsets[i + 1] - offsets[i]};
  }
};

/// Sequences that are read when they are needed, as a network sees them: what fit holds in memory
/// does not depend on their number.
struct Source {
  size_t count = 0, channels = 0;
  /// Steps of a sequence, at least one.
  std::function<size_t(size_t)> length;
  /// Writes length()·channels values. Several threads may ask at once.
  std::function<void(size_t, float*)> read;
};

/// The sequences of these numbers. std::runtime_error names one with a value that is not finite.
Block read_block(const Source& source, std::span<const size_t> numbers, int threads);

/// Calls f(numbers, block) for consecutive sequences of the list, a few megabytes at a time.
void for_blocks(const Source& source, std::span<const size_t> numbers, int threads,
                const std::function<void(std::span<const size_t>, const Block&)>& f);

/// A source of packed values; the spans must live as long as it does.
Source packed_source(std::span<const float> values, std::span<const int64_t> offsets,
                     size_t channels);

}  // namespace rotrnn::fit
