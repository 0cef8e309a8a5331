#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace rotrnn {

/// A ragged batch without padding: the tokens of all sequences one after the other.
struct PackedInput {
  std::span<const int64_t> offsets = {};  // [sequences + 1]: sequence i has rows offsets[i] to
                                          // offsets[i + 1] - 1, at least one
  std::span<const int64_t> tokens = {};   // [rows], or
  std::span<const float> values = {};     // [rows, channels]

  size_t sequences() const { return offsets.empty() ? 0 : offsets.size() - 1; }
  size_t rows() const { return offsets.empty() ? 0 : static_cast<size_t>(offsets.back()); }
};

/// std::invalid_argument unless the offsets begin with 0 and every sequence has a token.
void check_offsets(std::span<const int64_t> offsets);

/// Tokens of the longest sequence; 0 without sequences.
int64_t longest_of(std::span<const int64_t> offsets);

}  // namespace rotrnn
