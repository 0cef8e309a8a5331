#include "rotrnn/training/run_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "rotrnn/network/frontend.h"

namespace rotrnn {

std::string splits_text(const TaskData& data) {
  std::string out = "split\texample\n";
  const std::pair<const char*, const Examples*> splits[] = {
      {"train", &data.train}, {"validation", &data.validation}, {"test", &data.test}};
  for (const auto& [name, examples] : splits) {
    for (int64_t i = 0; i < examples->size(); ++i) {
      out += fmt::format("{}\t{}\n", name, examples->record(i).name);
    }
  }
  return out;
}

ModelOptions with_length(ModelOptions options, const TaskData& data) {
  options.frontend = frontend_of(options, data.facts.shape);
  int64_t& longest = options.s4.max_length;
  if (longest > 0) return options;
  for (const Examples* examples : {&data.train, &data.validation, &data.test}) {
    for (int64_t i = 0; i < examples->size(); ++i) {
      for (int64_t k = 0; k < examples->towers(); ++k) {
        longest = std::max(longest, frontend_tokens(options.frontend, examples->length(i, k)));
      }
    }
  }
  return options;
}

Sampler make_sampler(const Config& config, const TaskData& data) {
  const TaskOptions& task = config.task;
  const TrainingOptions& training = config.training;
  const auto seed = static_cast<uint64_t>(training.seed);
  if (task.target == TaskTarget::forecast && task.window == 0 &&
      data.train.size() < training.batch) {
    throw std::invalid_argument(
        fmt::format("training.batch is {} but there are {} series to train on; task.window cuts "
                    "them into more examples",
                    training.batch, data.train.size()));
  }
  if (training.batch_tokens == 0) return {data.train.size(), training.batch, seed};
  std::vector<int64_t> lengths;
  for (int64_t i = 0; i < data.train.size(); ++i) lengths.push_back(data.train.length(i));
  return {std::move(lengths), training.batch_tokens, seed};
}

std::vector<double> balanced_weights(const TaskData& data) {
  const DataShape& shape = data.facts.shape;
  if (shape.target != TargetKind::classes) {
    throw std::invalid_argument(
        "training.class_weights: \"balanced\" is for classes, and this task has values");
  }
  std::vector<double> count(static_cast<size_t>(shape.outputs));
  std::vector<int64_t> labels;
  double total = 0;
  for (int64_t i = 0; i < data.train.size(); ++i) {
    labels.assign(1, data.train.label(i));
    if (shape.per_token) {
      labels.resize(static_cast<size_t>(data.train.length(i)));
      data.train.write_token_labels(i, labels.data());
    }
    for (const int64_t label : labels) ++count[static_cast<size_t>(label)];
    total += static_cast<double>(labels.size());
  }
  const auto present = static_cast<double>(
      std::count_if(count.begin(), count.end(), [](double c) { return c > 0; }));
  for (double& c : count) c = c > 0 ? total / (present * c) : 0;
  return count;
}

}  // namespace rotrnn
