#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace rotrnn {

/// Where the sequences of a packed batch begin and end, and the index tensors made from that.
///
/// Sequence i owns the rows offsets[i] .. offsets[i + 1] - 1. The offsets stay on the host, so that
/// no operation has to ask the device for them.
class Layout {
 public:
  /// Offsets begin with 0 and never fall; every sequence has at least one token.
  Layout(std::vector<int64_t> offsets, torch::Device device);

  const std::vector<int64_t>& offsets() const { return offsets_; }
  int64_t sequences() const { return static_cast<int64_t>(offsets_.size()) - 1; }
  int64_t tokens() const { return offsets_.back(); }
  int64_t longest() const { return longest_; }
  torch::Device device() const { return device_; }

  /// Row of the first (last) token of every sequence, [sequences].
  const torch::Tensor& first() const { return first_; }
  const torch::Tensor& last() const { return last_; }
  /// Number of the sequence that a token belongs to, [tokens].
  const torch::Tensor& sequence() const { return sequence_; }
  /// Lengths as numbers to divide by, [sequences, 1], in double.
  const torch::Tensor& lengths() const { return lengths_; }

 private:
  std::vector<int64_t> offsets_;
  int64_t longest_ = 0;
  torch::Device device_;
  torch::Tensor first_, last_, sequence_, lengths_;
};

/// A ragged batch without padding: the tokens of all sequences one after the other.
struct Packed {
  torch::Tensor values;  // [tokens, ...]
  std::shared_ptr<const Layout> layout;

  Packed() = default;
  Packed(torch::Tensor values, std::vector<int64_t> offsets);
  /// The same sequences with other values.
  Packed with(torch::Tensor other) const {
    Packed out;
    out.values = std::move(other);
    out.layout = layout;
    return out;
  }
};

/// Takes the valid part of a padded batch [batch, time, ...]; the padding is never read.
Packed pack(const torch::Tensor& padded, const std::vector<int64_t>& lengths);

/// The padded form [batch, time, ...] of a packed batch, zeros after the end of each sequence.
torch::Tensor pad(const Packed& packed, int64_t time);

}  // namespace rotrnn
