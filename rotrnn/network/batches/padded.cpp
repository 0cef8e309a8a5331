#include "rotrnn/network/batches/padded.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "rotrnn/network/batches/packed.h"

namespace rotrnn {

PackedRows pack(std::span<const float> padded, std::span<const int64_t> lengths, int64_t time) {
  const size_t all = lengths.size() * static_cast<size_t>(time);
  if (time < 1 || lengths.empty() || padded.size() % all != 0) {
    throw std::invalid_argument(fmt::format("pack: {} numbers for a batch of {} sequences of {}",
                                            padded.size(), lengths.size(), time));
  }
  const size_t channels = padded.size() / all, row = static_cast<size_t>(time) * channels;
  PackedRows out{{0}, {}};
  for (size_t i = 0; i < lengths.size(); ++i) {
    if (lengths[i] < 1 || lengths[i] > time) {
      throw std::invalid_argument(fmt::format(
          "pack: length {} is not within 1 and {}, the size of time", lengths[i], time));
    }
    const auto tokens = padded.subspan(i * row, static_cast<size_t>(lengths[i]) * channels);
    out.values.insert(out.values.end(), tokens.begin(), tokens.end());
    out.offsets.push_back(out.offsets.back() + lengths[i]);
  }
  return out;
}

std::vector<float> pad(std::span<const float> values, std::span<const int64_t> offsets,
                       int64_t time) {
  check_offsets(offsets);
  if (time < longest_of(offsets)) {
    throw std::invalid_argument(fmt::format("pad: time {} is shorter than the longest sequence, {}",
                                            time, longest_of(offsets)));
  }
  const size_t sequences = offsets.size() - 1;
  const size_t channels = values.size() / static_cast<size_t>(offsets.back());
  std::vector<float> out(sequences * static_cast<size_t>(time) * channels);
  for (size_t i = 0; i < sequences; ++i) {
    const auto begin = static_cast<size_t>(offsets[i]), end = static_cast<size_t>(offsets[i + 1]);
    const auto rows = values.subspan(begin * channels, (end - begin) * channels);
    std::copy(rows.begin(), rows.end(), out.begin() + i * static_cast<size_t>(time) * channels);
  }
  return out;
}

}  // namespace rotrnn
