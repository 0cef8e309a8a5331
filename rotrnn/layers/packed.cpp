#include "rotrnn/layers/packed.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace rotrnn {
namespace {

torch::Tensor indices(const std::vector<int64_t>& values, torch::Device device) {
  return torch::tensor(values, torch::kInt64).to(device);
}

// Rows of [batch * time] that hold real tokens.
torch::Tensor padded_rows(const std::vector<int64_t>& offsets, int64_t time, torch::Device device) {
  std::vector<int64_t> rows;
  rows.reserve(offsets.back());
  for (size_t i = 0; i + 1 < offsets.size(); ++i) {
    for (int64_t t = 0; t < offsets[i + 1] - offsets[i]; ++t) {
      rows.push_back(static_cast<int64_t>(i) * time + t);
    }
  }
  return indices(rows, device);
}

}  // namespace

Layout::Layout(std::vector<int64_t> offsets, torch::Device device)
    : offsets_(std::move(offsets)), device_(device) {
  if (offsets_.empty() || offsets_.front() != 0) {
    throw std::invalid_argument("packed batch: offsets must begin with 0");
  }
  std::vector<int64_t> first, last, sequence;
  std::vector<double> lengths;
  sequence.reserve(offsets_.back());
  for (size_t i = 0; i + 1 < offsets_.size(); ++i) {
    const int64_t length = offsets_[i + 1] - offsets_[i];
    if (length < 1) {
      throw std::invalid_argument(fmt::format(
          "packed batch: sequence {} has {} tokens; leave empty sequences out", i, length));
    }
    longest_ = std::max(longest_, length);
    first.push_back(offsets_[i]);
    last.push_back(offsets_[i + 1] - 1);
    lengths.push_back(static_cast<double>(length));
    sequence.insert(sequence.end(), length, static_cast<int64_t>(i));
  }
  first_ = indices(first, device);
  last_ = indices(last, device);
  sequence_ = indices(sequence, device);
  lengths_ = torch::tensor(lengths, torch::kFloat64).to(device).unsqueeze(1);
}

Packed::Packed(torch::Tensor values_, std::vector<int64_t> offsets)
    : values(std::move(values_)),
      layout(std::make_shared<Layout>(std::move(offsets), values.device())) {
  if (values.size(0) != layout->tokens()) {
    throw std::invalid_argument(
        fmt::format("packed batch: the offsets end at {} but there are {} rows of values",
                    layout->tokens(), values.size(0)));
  }
}

Packed pack(const torch::Tensor& padded, const std::vector<int64_t>& lengths) {
  if (padded.dim() < 2) throw std::invalid_argument("pack: expected [batch, time, ...]");
  const int64_t batch = padded.size(0), time = padded.size(1);
  if (static_cast<int64_t>(lengths.size()) != batch) {
    throw std::invalid_argument(
        fmt::format("pack: {} lengths for a batch of {}", lengths.size(), batch));
  }
  std::vector<int64_t> offsets{0};
  for (int64_t length : lengths) {
    if (length < 1 || length > time) {
      throw std::invalid_argument(
          fmt::format("pack: length {} is not within 1 and {}, the size of time", length, time));
    }
    offsets.push_back(offsets.back() + length);
  }
  const auto rows = padded_rows(offsets, time, padded.device());
  return {padded.flatten(0, 1).index_select(0, rows), std::move(offsets)};
}

torch::Tensor pad(const Packed& packed, int64_t time) {
  const Layout& layout = *packed.layout;
  if (time < layout.longest()) {
    throw std::invalid_argument(fmt::format("pad: time {} is shorter than the longest sequence, {}",
                                            time, layout.longest()));
  }
  auto shape = packed.values.sizes().vec();
  shape[0] = layout.sequences() * time;
  const auto rows = padded_rows(layout.offsets(), time, layout.device());
  const auto flat = torch::zeros(shape, packed.values.options()).index_copy(0, rows, packed.values);
  return flat.unflatten(0, {layout.sequences(), time});
}

}  // namespace rotrnn
