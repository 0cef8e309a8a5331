#include "rotrnn/training/batch.h"

namespace rotrnn {
namespace {

torch::Tensor make_targets(const Examples& examples, const DataShape& shape,
                           std::span<const int64_t> numbers, int64_t tokens) {
  const auto count = static_cast<int64_t>(numbers.size());
  const int64_t rows = shape.per_token ? tokens : count;
  if (shape.target == TargetKind::classes) {
    torch::Tensor targets = torch::empty({rows}, torch::kInt64);
    auto* out = targets.data_ptr<int64_t>();
    for (const int64_t i : numbers) {
      if (shape.per_token) {
        examples.write_token_labels(i, out);
        out += examples.length(i);
      } else {
        *out++ = examples.label(i);
      }
    }
    return targets;
  }
  torch::Tensor targets = torch::empty({rows, shape.outputs}, torch::kFloat32);
  auto* out = targets.data_ptr<float>();
  for (const int64_t i : numbers) {
    if (shape.per_token) {
      examples.write_forecasts(i, out);
      out += examples.length(i) * shape.outputs;
    } else {
      examples.write_targets(i, out);
      out += shape.outputs;
    }
  }
  return targets;
}

}  // namespace

Batch make_batch(const Examples& examples, const DataShape& shape, std::span<const int64_t> numbers,
                 bool with_targets) {
  std::vector<int64_t> offsets{0}, sequences;
  for (const int64_t i : numbers) {
    for (int64_t k = 0; k < examples.towers(); ++k) {
      offsets.push_back(offsets.back() + examples.length(i, k));
      sequences.push_back(i * examples.towers() + k);
    }
  }
  const int64_t tokens = offsets.back();
  torch::Tensor values;
  if (shape.input == InputKind::tokens) {
    values = torch::empty({tokens}, torch::kInt64);
    auto* out = values.data_ptr<int64_t>();
    for (const int64_t i : numbers) {
      examples.write_tokens(i, out);
      out += examples.length(i);
    }
  } else {
    values = torch::empty({tokens, shape.inputs}, torch::kFloat32);
    auto* out = values.data_ptr<float>();
    for (const int64_t i : numbers) {
      examples.write_values(i, out);
      out += examples.length(i) * shape.inputs;
    }
  }
  Batch batch{Packed(values, std::move(offsets)), {}, std::move(sequences)};
  if (with_targets) batch.targets = make_targets(examples, shape, numbers, tokens);
  return batch;
}

}  // namespace rotrnn
