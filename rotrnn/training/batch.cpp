#include "rotrnn/training/batch.h"

#include "rotrnn/base/random.h"

namespace rotrnn {
namespace {

void add_targets(const Examples& examples, const DataShape& shape, std::span<const int64_t> numbers,
                 Batch& batch) {
  const auto outputs = static_cast<size_t>(shape.outputs);
  if (shape.target == TargetKind::classes) {
    batch.classes.resize(batch.rows);
    int64_t* out = batch.classes.data();
    for (const int64_t i : numbers) {
      if (shape.per_token) {
        examples.write_token_labels(i, out);
        out += examples.length(i);
      } else {
        *out++ = examples.label(i);
      }
    }
    return;
  }
  batch.target_values.resize(batch.rows * outputs);
  float* out = batch.target_values.data();
  for (const int64_t i : numbers) {
    if (shape.per_token) {
      examples.write_forecasts(i, out);
      out += examples.length(i) * shape.outputs;
    } else {
      examples.write_targets(i, out);
      out += shape.outputs;
    }
  }
}

}  // namespace

Batch make_batch(const Examples& examples, const DataShape& shape, std::span<const int64_t> numbers,
                 bool with_targets) {
  Batch batch;
  for (const int64_t i : numbers) {
    for (int64_t k = 0; k < examples.towers(); ++k) {
      batch.offsets.push_back(batch.offsets.back() + examples.length(i, k));
      batch.sequences.push_back(i * examples.towers() + k);
    }
  }
  batch.rows = shape.per_token ? static_cast<size_t>(batch.length()) : numbers.size();
  if (shape.input == InputKind::tokens) {
    batch.tokens.resize(static_cast<size_t>(batch.length()));
    int64_t* out = batch.tokens.data();
    for (const int64_t i : numbers) {
      examples.write_tokens(i, out);
      out += examples.length(i);
    }
  } else {
    batch.values.resize(static_cast<size_t>(batch.length() * shape.inputs));
    float* out = batch.values.data();
    for (const int64_t i : numbers) {
      examples.write_values(i, out);
      out += examples.length(i) * shape.inputs;
    }
  }
  if (with_targets) add_targets(examples, shape, numbers, batch);
  return batch;
}

double train_pass(Network& network, Workspace& workspace, const Batch& batch,
                  const DropoutKey& dropout, const LossOptions& loss, FlatArray& gradients,
                  std::vector<float>& dy) {
  NetworkInput input;
  input.batch = batch.input();
  input.mode = Mode::train;
  input.backward = true;
  input.dropout = dropout;
  const std::span<const float> y = network.forward(input, workspace);
  dy.resize(y.size());
  const auto outputs = static_cast<size_t>(network.shape().outputs);
  const double value =
      loss_of(loss, batch.targets(), y.data(), outputs, dy.data(), batch.share) * batch.share;
  network.backward({dy.data(), {}}, workspace, gradients);
  return value;
}

Batch make_noise(const DataShape& shape, const std::vector<int64_t>& lengths) {
  Batch batch;
  for (const int64_t length : lengths) {
    batch.sequences.push_back(static_cast<int64_t>(batch.sequences.size()));
    batch.offsets.push_back(batch.offsets.back() + length);
  }
  Random random(0, RandomSite::trial);
  const auto rows = static_cast<size_t>(batch.length());
  const auto draw_below = [&](std::vector<int64_t>& out, size_t count, int64_t end) {
    out.resize(count);
    for (int64_t& x : out) x = random.below(static_cast<uint32_t>(end));
  };
  const auto draw_normal = [&](std::vector<float>& out, size_t count) {
    out.resize(count);
    for (float& x : out) x = static_cast<float>(random.normal());
  };
  if (shape.input == InputKind::tokens) {
    draw_below(batch.tokens, rows, shape.inputs);
  } else {
    draw_normal(batch.values, rows * static_cast<size_t>(shape.inputs));
  }
  batch.rows = shape.per_token ? rows : lengths.size() / static_cast<size_t>(shape.towers);
  if (shape.target == TargetKind::classes) {
    draw_below(batch.classes, batch.rows, shape.outputs);
  } else {
    draw_normal(batch.target_values, batch.rows * static_cast<size_t>(shape.outputs));
  }
  return batch;
}

}  // namespace rotrnn
