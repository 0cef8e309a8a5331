#include "rotrnn/training/evaluate/predictor.h"

#include <algorithm>

#include "rotrnn/training/batch.h"
#include "rotrnn/training/checkpoint/network_checkpoint.h"

namespace rotrnn {

namespace {

// From the rows of one example: one, or one per step.
Prediction read_prediction(const TaskFacts& facts, std::span<const double> rows) {
  Prediction p;
  const Preprocessing& pre = facts.preprocessing;
  const auto outputs = static_cast<size_t>(facts.shape.outputs);
  const auto last = rows.last(outputs);
  const auto largest = [&](std::span<const double> row) {
    return std::max_element(row.begin(), row.end()) - row.begin();
  };
  const bool classes = facts.shape.target == TargetKind::classes;
  if (classes && facts.shape.per_token) {
    for (size_t t = 0; t < rows.size(); t += outputs) {
      p.labels.push_back(largest(rows.subspan(t, outputs)));
    }
  } else if (classes) {
    p.label = largest(last);
    p.probabilities.assign(last.begin(), last.end());
  } else if (facts.shape.per_token) {  // what follows the last step
    for (size_t k = 0; k < outputs; ++k) {
      const auto c = static_cast<size_t>(pre.target_channels[k % pre.target_channels.size()]);
      p.values.push_back(last[k] * pre.deviation[c] + pre.mean[c]);
    }
  } else {
    for (size_t k = 0; k < outputs; ++k) {
      p.values.push_back(last[k] * pre.target_deviation[k] + pre.target_mean[k]);
    }
  }
  return p;
}

}  // namespace

struct Predictor::Impl {
  Impl(const Checkpoint& checkpoint, const EngineOptions& engine)
      : header(checkpoint.header), network(load_network(checkpoint, engine)) {}

  CheckpointHeader header;
  Network network;
  Workspace workspace;
  bool mapped = false;  // the workspace has the maps of these weights
};

Predictor::Predictor(const std::filesystem::path& run, Which which, const EngineOptions& engine)
    : impl_(std::make_unique<Impl>(read_checkpoint(find_checkpoint(run, which), Parts::weights),
                                   engine)) {}

Predictor::~Predictor() = default;

const CheckpointHeader& Predictor::header() const {
  return impl_->header;
}

std::vector<Prediction> Predictor::predict(const Examples& examples,
                                           std::span<const int64_t> numbers) {
  if (numbers.empty()) return {};
  const DataShape& shape = impl_->header.facts.shape;
  const Batch batch = make_batch(examples, shape, numbers, false);
  NetworkInput input;
  input.batch = batch.input();
  input.same_weights = impl_->mapped;
  const auto y = impl_->network.forward(input, impl_->workspace);
  impl_->mapped = true;
  std::vector<double> rows(y.begin(), y.end());
  const auto outputs = static_cast<size_t>(shape.outputs);
  if (shape.target == TargetKind::classes) softmax(rows.data(), rows.size() / outputs, outputs);
  std::vector<Prediction> out;
  size_t row = 0;
  for (const int64_t i : numbers) {
    const size_t count = shape.per_token ? static_cast<size_t>(examples.length(i)) : 1;
    const auto of_example = std::span(rows).subspan(row * outputs, count * outputs);
    out.push_back(read_prediction(impl_->header.facts, of_example));
    row += count;
  }
  return out;
}

}  // namespace rotrnn
