#include "rotrnn/training/batch.h"

#include <algorithm>

namespace rotrnn {

Batch make_batch(const Examples& examples, const DataShape& shape,
                 std::span<const int64_t> numbers) {
  std::vector<int64_t> offsets{0}, labels;
  for (int64_t i : numbers) {
    offsets.push_back(offsets.back() + examples.length(i));
    labels.push_back(examples.labels[i]);
  }
  torch::Tensor values;
  if (shape.input == InputKind::tokens) {
    values = torch::empty({offsets.back()}, torch::kInt64);
    auto* out = values.data_ptr<int64_t>();
    for (int64_t i : numbers) {
      out = std::copy(examples.tokens.begin() + examples.offsets[i],
                      examples.tokens.begin() + examples.offsets[i + 1], out);
    }
  } else {
    values = torch::empty({offsets.back(), shape.inputs}, torch::kFloat32);
    auto* out = values.data_ptr<float>();
    for (int64_t i : numbers) {
      out = std::copy(examples.values.begin() + examples.offsets[i] * shape.inputs,
                      examples.values.begin() + examples.offsets[i + 1] * shape.inputs, out);
    }
  }
  return {Packed(values, std::move(offsets)),
          torch::tensor(labels, torch::kInt64),
          {numbers.begin(), numbers.end()}};
}

}  // namespace rotrnn
