#include "rotrnn/training/network.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <stdexcept>

#include "rotrnn/io/atomic_file.h"
#include "rotrnn/kernels/threads.h"
#include "rotrnn/training/batch.h"

namespace rotrnn {
namespace {

// Tokens of one evaluation batch: enough to keep the cores busy, few enough for any memory.
constexpr int64_t kEvaluationTokens = 32768;

// Sums over the batches of an evaluation.
class Scorer {
 public:
  Scorer(const DataShape& shape, const Preprocessing& preprocessing)
      : shape_(shape), preprocessing_(preprocessing) {
    scores_.classes = shape.target == TargetKind::classes;
    if (scores_.classes) {
      scores_.confusion.resize(static_cast<size_t>(shape.outputs * shape.outputs));
    }
  }

  void add(const Batch& batch, const torch::Tensor& y) {
    const int64_t told = batch.told();
    scores_.loss +=
        loss_of(shape_.target, y, batch.targets).item<double>() * static_cast<double>(told);
    told_ += told;
    scores_.classes ? add_classes(batch.targets, y.argmax(-1)) : add_values(batch, y);
  }

  // Of all processes that share the work.
  void reduce(Group& group) {
    std::vector<double> sums{
        scores_.loss,      scores_.accuracy,          scores_.mae, scores_.mse, scores_.naive_mae,
        scores_.naive_mse, static_cast<double>(told_)};
    sums.insert(sums.end(), scores_.confusion.begin(), scores_.confusion.end());
    group.all_reduce(sums.data(), sums.size());
    double* to[] = {&scores_.loss, &scores_.accuracy,  &scores_.mae,
                    &scores_.mse,  &scores_.naive_mae, &scores_.naive_mse};
    for (size_t i = 0; i < std::size(to); ++i) *to[i] = sums[i];
    told_ = std::llround(sums[6]);
    for (size_t i = 0; i < scores_.confusion.size(); ++i) {
      scores_.confusion[i] = std::llround(sums[7 + i]);
    }
  }

  Scores finish(int64_t examples) {
    scores_.examples = examples;
    const auto count = static_cast<double>(std::max<int64_t>(told_, 1));
    scores_.loss /= count;
    scores_.accuracy /= count;
    for (double* sum : {&scores_.mae, &scores_.mse, &scores_.naive_mae, &scores_.naive_mse}) {
      *sum /= count * static_cast<double>(shape_.outputs);
    }
    return scores_;
  }

 private:
  void add_classes(const torch::Tensor& targets, const torch::Tensor& said) {
    const auto truth = targets.contiguous(), answer = said.contiguous();
    for (int64_t i = 0; i < truth.numel(); ++i) {
      const int64_t t = truth.data_ptr<int64_t>()[i], a = answer.data_ptr<int64_t>()[i];
      ++scores_.confusion[static_cast<size_t>(t * shape_.outputs + a)];
      scores_.accuracy += t == a;
    }
  }

  void add_values(const Batch& batch, const torch::Tensor& y) {
    torch::Tensor unit = torch::ones({shape_.outputs}, torch::kFloat64);
    torch::Tensor naive = torch::zeros_like(batch.targets);  // the mean of the training targets
    if (preprocessing_.horizon > 0) {
      naive = batch.input.values.index_select(1, torch::tensor(preprocessing_.target_channels))
                  .repeat({1, preprocessing_.horizon});
    } else {
      unit = torch::tensor(preprocessing_.target_deviation, torch::kFloat64);
    }
    const auto sum = [&](const torch::Tensor& said, double& mae, double& mse) {
      const torch::Tensor error = (said - batch.targets).to(torch::kFloat64) * unit;
      mae += error.abs().sum().item<double>();
      mse += error.square().sum().item<double>();
    };
    sum(y, scores_.mae, scores_.mse);
    sum(naive, scores_.naive_mae, scores_.naive_mse);
  }

  DataShape shape_;
  const Preprocessing& preprocessing_;
  Scores scores_;
  int64_t told_ = 0;
};

}  // namespace

Scores evaluate(SequenceModelImpl& model, const Examples& examples, Group* group) {
  torch::NoGradGuard no_grad;
  const bool was_training = model.is_training();
  model.eval();
  // By length, so that a batch holds sequences of one kind; the order does not change the scores.
  std::vector<int64_t> lengths;
  for (int64_t i = 0; i < examples.size(); ++i) lengths.push_back(examples.length(i));
  std::vector<int64_t> order = take_shard(lengths, group ? group->shard() : Shard{});
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return examples.length(a) < examples.length(b); });
  Scorer scorer(model.shape(), examples.preprocessing());
  for (size_t begin = 0; begin < order.size();) {
    size_t end = begin;
    for (int64_t tokens = 0; end < order.size(); ++end) {
      tokens += examples.length(order[end]);
      if (end > begin && tokens > kEvaluationTokens) break;
    }
    const Batch batch = make_batch(examples, model.shape(), {&order[begin], end - begin});
    scorer.add(batch, model.forward(batch.input).y);
    begin = end;
  }
  model.train(was_training);
  if (group) scorer.reduce(*group);
  return scorer.finish(examples.size());
}

NamedTensors moments_of(const AdamW& optimiser) {
  NamedTensors tensors;
  for (const auto& slot : optimiser.slots()) {
    tensors.emplace_back("first." + slot.name, slot.first);
    tensors.emplace_back("second." + slot.name, slot.second);
  }
  return tensors;
}

void save_checkpoint(const std::filesystem::path& folder, const NamedTensors& weights,
                     const NamedTensors& moments, const CheckpointHeader& header,
                     const std::filesystem::path& previous) {
  const std::filesystem::path fresh = folder.string() + ".new";
  try {
    write_checkpoint(fresh, header, TensorBytes(weights).views, TensorBytes(moments).views);
    previous.empty() ? replace_folder(fresh, folder) : rotate_folder(fresh, folder, previous);
  } catch (...) {
    std::error_code ignored;
    std::filesystem::remove_all(fresh, ignored);
    throw;
  }
}

void load_checkpoint(const Checkpoint& checkpoint, SequenceModelImpl& model, AdamW* optimiser) {
  load_tensors(checkpoint.weights.value(), state_of(model));
  if (optimiser) load_tensors(checkpoint.moments.value(), moments_of(*optimiser));
}

SequenceModel load_model(const Checkpoint& checkpoint, const EngineOptions& engine) {
  SequenceModel model(checkpoint.header.config.model, checkpoint.header.facts.shape, 0);
  load_checkpoint(checkpoint, *model, nullptr);
  model->engine = engine;
  model->eval();
  return model;
}

bool take_weights(const std::filesystem::path& folder, SequenceModelImpl& model) {
  const SafeTensorFile file = read_checkpoint(folder, Parts::weights).weights.value();
  const bool same_head = file.contains("head.weight") &&
                         file.at("head.weight").shape == model.head->weight.sizes().vec();
  torch::NoGradGuard no_grad;
  NamedTensors targets = state_of(model);
  for (auto& [name, target] : targets) {
    if (!same_head && name.starts_with("head.")) continue;
    if (!file.contains(name) || file.at(name).shape != target.sizes().vec()) {
      throw std::invalid_argument(fmt::format(
          "--init-from {}: its \"{}\" is {}, this model needs [{}]; the [model] settings must be "
          "the same",
          folder.string(), name,
          file.contains(name) ? fmt::format("[{}]", fmt::join(file.at(name).shape, ", "))
                              : "missing",
          fmt::join(target.sizes(), ", ")));
    }
  }
  for (auto& [name, target] : targets) {
    if (same_head || !name.starts_with("head.")) target.copy_(to_tensor(file.at(name)));
  }
  return same_head;
}

int use_threads(int64_t threads) {
  const int count = threads > 0 ? static_cast<int>(threads) : kernels::available_threads();
  torch::set_num_threads(count);
  return count;
}

namespace {

// Fewer steps a second, each longer: only layers with a time step can do that.
void keep_every(int64_t k, CheckpointHeader& header) {
  if (k == 1) return;
  ModelOptions& m = header.config.model;
  if (m.layer != "s5" && m.layer != "s4d") {
    throw std::invalid_argument(
        fmt::format("--keep-every: {} has no time step to make longer; s5 and s4d have", m.layer));
  }
  if (header.facts.preprocessing.tokens()) {
    throw std::invalid_argument("--keep-every: is for series of numbers, not for text");
  }
  (m.layer == "s5" ? m.s5.step_rescale : m.s4d.step_rescale) *= static_cast<double>(k);
  header.facts.preprocessing.keep_every *= k;
}

}  // namespace

Evaluation evaluate_run(const EvaluationRequest& request) {
  const std::filesystem::path folder =
      std::filesystem::absolute(find_checkpoint(request.run, request.which)).lexically_normal();
  Checkpoint checkpoint = read_checkpoint(folder, Parts::weights);
  CheckpointHeader& header = checkpoint.header;
  keep_every(request.keep_every, header);
  const int used = use_threads(request.engine.threads);
  SequenceModel model = load_model(checkpoint, request.engine);
  TaskOptions& task = header.config.task;
  if (!request.data_path.empty()) {
    task.path = request.data_path;
    task.train_path = task.validation_path = task.test_path = "";
  }
  const TaskData data = load_task(task, used, &header.facts);
  const Examples& examples = request.split == "train"        ? data.train
                             : request.split == "validation" ? data.validation
                                                             : data.test;
  Evaluation out;
  out.scores = evaluate(*model, examples);
  if (out.scores.classes) out.majority = majority(examples, header.facts.shape.outputs);
  out.step = header.state.step;
  out.checkpoint = folder.filename().string();
  out.classes = header.facts.classes;
  out.messages = data.messages;
  if (!checkpoint.checked) {
    out.messages.push_back(
        fmt::format("{}: of an older format, which has no checksums", checkpoint.folder.string()));
  }
  return out;
}

}  // namespace rotrnn
