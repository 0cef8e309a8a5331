#include "rotrnn/training/predictor.h"

#include "rotrnn/training/batch.h"
#include "rotrnn/training/network.h"

namespace rotrnn {

namespace {

// From the rows of one example: one, or one a step.
Prediction read_prediction(const TaskFacts& facts, const torch::Tensor& rows) {
  Prediction p;
  const Preprocessing& pre = facts.preprocessing;
  const torch::Tensor last = rows[-1].contiguous();
  const auto* at = last.data_ptr<double>();
  const bool classes = facts.shape.target == TargetKind::classes;
  if (classes && facts.shape.per_token) {
    const torch::Tensor said = rows.argmax(-1).contiguous();
    p.labels.assign(said.data_ptr<int64_t>(), said.data_ptr<int64_t>() + said.numel());
  } else if (classes) {
    p.label = last.argmax().item<int64_t>();
    p.probabilities.assign(at, at + last.numel());
  } else if (facts.shape.per_token) {  // what follows the last step
    const int64_t told = std::ssize(pre.target_channels);
    for (int64_t k = 0; k < last.numel(); ++k) {
      const int64_t c = pre.target_channels[k % told];
      p.values.push_back(at[k] * pre.deviation[c] + pre.mean[c]);
    }
  } else {
    for (int64_t k = 0; k < last.numel(); ++k) {
      p.values.push_back(at[k] * pre.target_deviation[k] + pre.target_mean[k]);
    }
  }
  return p;
}

}  // namespace

struct Predictor::Impl {
  CheckpointHeader header;
  SequenceModel model = nullptr;
};

Predictor::Predictor(const std::filesystem::path& run, Which which, const EngineOptions& engine)
    : impl_(std::make_unique<Impl>()) {
  const Checkpoint checkpoint = read_checkpoint(find_checkpoint(run, which), Parts::weights);
  use_threads(engine.threads);
  impl_->header = checkpoint.header;
  impl_->model = load_model(checkpoint, engine);
}

Predictor::~Predictor() = default;

const CheckpointHeader& Predictor::header() const {
  return impl_->header;
}

std::vector<Prediction> Predictor::predict(const Examples& examples,
                                           std::span<const int64_t> numbers) {
  if (numbers.empty()) return {};
  torch::NoGradGuard no_grad;
  const DataShape& shape = impl_->header.facts.shape;
  const Batch batch = make_batch(examples, shape, numbers, false);
  torch::Tensor y = impl_->model->forward(batch.input).y;
  if (shape.target == TargetKind::classes) y = y.softmax(-1);
  y = y.to(torch::kFloat64).contiguous();
  std::vector<Prediction> out;
  int64_t row = 0;
  for (const int64_t i : numbers) {
    const int64_t rows = shape.per_token ? examples.length(i) : 1;
    out.push_back(read_prediction(impl_->header.facts, y.narrow(0, row, rows)));
    row += rows;
  }
  return out;
}

}  // namespace rotrnn
