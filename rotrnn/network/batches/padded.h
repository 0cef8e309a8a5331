#pragma once

#include <cstdint>
#include <span>
#include <vector>

/// Padded batches, for programs that have them: [sequences, time, channels], sequence after
/// sequence, each filled up behind its last token.
namespace rotrnn {

/// The rows of a packed batch and where its sequences begin.
struct PackedRows {
  std::vector<int64_t> offsets;
  std::vector<float> values;  // [rows, channels]
};

/// Takes the tokens out of a padded batch; the padding is never read. std::invalid_argument when
/// the lengths do not fit it.
PackedRows pack(std::span<const float> padded, std::span<const int64_t> lengths, int64_t time);

/// The way back, zeros behind the end of each sequence.
std::vector<float> pad(std::span<const float> values, std::span<const int64_t> offsets,
                       int64_t time);

}  // namespace rotrnn
