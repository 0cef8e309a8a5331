#include "rotrnn/data/examples.h"

#include <algorithm>

namespace rotrnn {

Examples::Examples(std::shared_ptr<const Records> records,
                   std::shared_ptr<const Preprocessing> preprocessing, std::vector<Part> parts)
    : records_(std::move(records)),
      preprocessing_(std::move(preprocessing)),
      parts_(std::move(parts)) {
  offsets_.reserve(parts_.size() * static_cast<size_t>(towers()) + 1);
  for (int64_t i = 0; i < size(); ++i) {
    for (int64_t k = 0; k < towers(); ++k) {
      offsets_.push_back(offsets_.back() + preprocessing_->length(bytes(i, k)));
    }
  }
}

std::span<const std::byte> Examples::bytes(int64_t i, int64_t k) const {
  const Part& part = parts_[i];
  const auto all = records_->sequences.at(part.record * towers() + k);
  if (part.steps < 0) return all;
  const RecordForm& form = records_->form;
  const auto step = static_cast<size_t>(element_size(form.element) * form.channels);
  return all.subspan(static_cast<size_t>(part.begin) * step,
                     static_cast<size_t>(part.steps) * step);
}

void Examples::write_tokens(int64_t i, int64_t* out) const {
  for (int64_t k = 0; k < towers(); ++k) {
    preprocessing_->write_tokens(bytes(i, k), out);
    out += length(i, k);
  }
}

void Examples::write_values(int64_t i, float* out) const {
  for (int64_t k = 0; k < towers(); ++k) {
    preprocessing_->write_values(bytes(i, k), out);
    out += length(i, k) * records_->form.channels;
  }
}

void Examples::write_token_labels(int64_t i, int64_t* out) const {
  const auto& classes = record(i).token_classes;
  for (int64_t t = 0; t < length(i); ++t) {
    out[t] = classes[parts_[i].begin + t * preprocessing_->keep_every];
  }
}

void Examples::write_targets(int64_t i, float* out) const {
  const auto& values = record(i).values;
  for (size_t k = 0; k < values.size(); ++k) {
    out[k] = static_cast<float>((values[k] - preprocessing_->target_mean[k]) /
                                preprocessing_->target_deviation[k]);
  }
}

void Examples::write_forecasts(int64_t i, float* out) const {
  // The window and the steps after it that are to be predicted.
  const Preprocessing& p = *preprocessing_;
  const auto all = records_->sequences.at(parts_[i].record);
  const int64_t C = records_->form.channels;
  const auto step = static_cast<size_t>(element_size(records_->form.element) * C);
  const int64_t steps = length(i), seen = (steps + p.horizon) * p.keep_every;
  const auto begin = static_cast<size_t>(parts_[i].begin) * step;
  const auto window =
      all.subspan(begin, std::min(static_cast<size_t>(seen) * step, all.size() - begin));
  std::vector<float> values(static_cast<size_t>(p.length(window) * C));
  p.write_values(window, values.data());
  for (int64_t t = 0; t < steps; ++t) {
    for (int64_t k = 1; k <= p.horizon; ++k) {
      for (const int64_t c : p.target_channels) *out++ = values[(t + k) * C + c];
    }
  }
}

}  // namespace rotrnn
