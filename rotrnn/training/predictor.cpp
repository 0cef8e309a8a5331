#include "rotrnn/training/predictor.h"

#include <numeric>

#include "rotrnn/training/batch.h"
#include "rotrnn/training/network.h"

namespace rotrnn {

struct Predictor::Impl {
  CheckpointHeader header;
  SequenceModel model = nullptr;
};

Predictor::Predictor(const std::filesystem::path& run, Which which, const EngineOptions& engine)
    : impl_(std::make_unique<Impl>()) {
  const auto folder = find_checkpoint(run, which);
  use_threads(engine.threads);
  impl_->header = read_header(folder);
  impl_->model = load_model(folder, impl_->header, engine);
}

Predictor::~Predictor() = default;

const CheckpointHeader& Predictor::header() const {
  return impl_->header;
}

std::vector<Prediction> Predictor::predict(const std::vector<std::string>& texts) {
  Examples examples;
  for (const std::string& text : texts) {
    const auto tokens = encode_text(impl_->header.config.task, text);
    examples.tokens.insert(examples.tokens.end(), tokens.begin(), tokens.end());
    examples.offsets.push_back(static_cast<int64_t>(examples.tokens.size()));
    examples.labels.push_back(0);
  }
  std::vector<int64_t> numbers(texts.size());
  std::iota(numbers.begin(), numbers.end(), 0);
  return predict(examples, numbers);
}

std::vector<Prediction> Predictor::predict(const Examples& examples,
                                           std::span<const int64_t> numbers) {
  if (numbers.empty()) return {};
  torch::NoGradGuard no_grad;
  const Batch batch = make_batch(examples, impl_->header.facts.shape, numbers);
  const torch::Tensor y = impl_->model->forward(batch.input).y.softmax(-1).to(torch::kFloat64);
  std::vector<Prediction> out;
  for (int64_t i = 0; i < y.size(0); ++i) {
    const torch::Tensor row = y[i].contiguous();
    Prediction p;
    p.label = row.argmax().item<int64_t>();
    p.probabilities.assign(row.data_ptr<double>(), row.data_ptr<double>() + row.numel());
    out.push_back(std::move(p));
  }
  return out;
}

}  // namespace rotrnn
