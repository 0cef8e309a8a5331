#include "rotrnn/training/evaluate/evaluate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <stdexcept>

#include "rotrnn/training/batch.h"
#include "rotrnn/training/checkpoint/network_checkpoint.h"
#include "rotrnn/training/evaluate/evaluate_network.h"

namespace rotrnn {
namespace {

// Tokens of one evaluation batch: enough to keep the cores busy, few enough for any memory.
constexpr int64_t kEvaluationTokens = 32768;

// Sums over the batches of an evaluation.
class ScoreSums {
 public:
  ScoreSums(const DataShape& shape, const Preprocessing& preprocessing, LossOptions loss)
      : shape_(shape), preprocessing_(preprocessing), loss_(std::move(loss)) {
    scores_.classes = shape.target == TargetKind::classes;
    if (scores_.classes) {
      scores_.confusion.resize(static_cast<size_t>(shape.outputs * shape.outputs));
    }
  }

  void add(const Batch& batch, std::span<const float> y) {
    const auto outputs = static_cast<size_t>(shape_.outputs);
    scores_.loss +=
        loss_of(loss_, batch.targets(), y.data(), outputs) * static_cast<double>(batch.rows);
    targets_ += static_cast<int64_t>(batch.rows);
    scores_.classes ? add_classes(batch, y) : add_values(batch, y);
  }

  // Sums over all processes that share the work.
  void reduce(Group& group) {
    std::vector<double> sums{scores_.loss,
                             scores_.accuracy,
                             scores_.mae,
                             scores_.mse,
                             scores_.naive_mae,
                             scores_.naive_mse,
                             static_cast<double>(targets_)};
    sums.insert(sums.end(), scores_.confusion.begin(), scores_.confusion.end());
    group.all_reduce(sums.data(), sums.size());
    double* to[] = {&scores_.loss, &scores_.accuracy,  &scores_.mae,
                    &scores_.mse,  &scores_.naive_mae, &scores_.naive_mse};
    for (size_t i = 0; i < std::size(to); ++i) *to[i] = sums[i];
    targets_ = std::llround(sums[6]);
    for (size_t i = 0; i < scores_.confusion.size(); ++i) {
      scores_.confusion[i] = std::llround(sums[7 + i]);
    }
  }

  Scores finish(int64_t examples) {
    scores_.examples = examples;
    const auto count = static_cast<double>(std::max<int64_t>(targets_, 1));
    scores_.loss /= count;
    scores_.accuracy /= count;
    for (double* sum : {&scores_.mae, &scores_.mse, &scores_.naive_mae, &scores_.naive_mse}) {
      *sum /= count * static_cast<double>(shape_.outputs);
    }
    return scores_;
  }

 private:
  void add_classes(const Batch& batch, std::span<const float> y) {
    const auto outputs = static_cast<size_t>(shape_.outputs);
    for (size_t r = 0; r < batch.rows; ++r) {
      const auto row = y.subspan(r * outputs, outputs);
      const auto answer = std::max_element(row.begin(), row.end()) - row.begin();
      const int64_t truth = batch.classes[r];
      ++scores_.confusion[static_cast<size_t>(truth * shape_.outputs + answer)];
      scores_.accuracy += truth == answer;
    }
  }

  void add_values(const Batch& batch, std::span<const float> y) {
    const auto outputs = static_cast<size_t>(shape_.outputs);
    const auto& channels = preprocessing_.target_channels;
    const bool forecast = preprocessing_.horizon > 0;
    for (size_t i = 0; i < y.size(); ++i) {
      const size_t row = i / outputs, k = i % outputs;
      const double target = static_cast<double>(batch.target_values[i]);
      // The naive prediction: the last value, or the mean of the training targets.
      double naive = 0;
      if (forecast) {
        const auto channel = static_cast<size_t>(channels[k % channels.size()]);
        naive =
            static_cast<double>(batch.values[row * static_cast<size_t>(shape_.inputs) + channel]);
      }
      const double unit = forecast ? 1 : preprocessing_.target_deviation[k];
      const double error = (static_cast<double>(y[i]) - target) * unit;
      const double naive_error = (naive - target) * unit;
      scores_.mae += std::abs(error);
      scores_.mse += error * error;
      scores_.naive_mae += std::abs(naive_error);
      scores_.naive_mse += naive_error * naive_error;
    }
  }

  DataShape shape_;
  const Preprocessing& preprocessing_;
  LossOptions loss_;
  Scores scores_;
  int64_t targets_ = 0;
};

// Fewer steps per second, each longer: only layers with a time step can do that.
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

LossOptions loss_options(const TrainingOptions& training, const DataShape& shape) {
  LossOptions out;
  switch (training.loss) {
    case TrainingLoss::automatic:
      out.loss = shape.target == TargetKind::classes ? Loss::cross_entropy : Loss::mean_square;
      break;
    case TrainingLoss::cross_entropy:
      out.loss = Loss::cross_entropy;
      break;
    case TrainingLoss::mean_square:
      out.loss = Loss::mean_square;
      break;
    case TrainingLoss::mean_absolute:
      out.loss = Loss::mean_absolute;
      break;
    case TrainingLoss::huber:
      out.loss = Loss::huber;
      break;
  }
  out.delta = training.huber_delta;
  if ((out.loss == Loss::cross_entropy) != (shape.target == TargetKind::classes)) {
    throw std::invalid_argument(
        fmt::format("training.loss: \"{}\" is for {}, and this task has {}; use \"automatic\"",
                    loss_name(out.loss), out.loss == Loss::cross_entropy ? "classes" : "values",
                    shape.target == TargetKind::classes ? "classes" : "values"));
  }
  return out;
}

Scores evaluate(Network& network, Workspace& workspace, const LossOptions& loss,
                const Examples& examples, Group* group) {
  // By length, so that a batch holds sequences of one kind; the order does not change the scores.
  std::vector<int64_t> lengths;
  for (int64_t i = 0; i < examples.size(); ++i) lengths.push_back(examples.length(i));
  std::vector<int64_t> order = take_shard(lengths, group ? group->shard() : Shard{});
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return examples.length(a) < examples.length(b); });
  ScoreSums scorer(network.shape(), examples.preprocessing(), loss);
  for (size_t begin = 0; begin < order.size();) {
    size_t end = begin;
    for (int64_t tokens = 0; end < order.size(); ++end) {
      tokens += examples.length(order[end]);
      if (end > begin && tokens > kEvaluationTokens) break;
    }
    const Batch batch = make_batch(examples, network.shape(), {&order[begin], end - begin});
    NetworkInput input;
    input.batch = batch.input();
    input.same_weights = begin > 0;
    scorer.add(batch, network.forward(input, workspace));
    begin = end;
  }
  if (group) scorer.reduce(*group);
  return scorer.finish(examples.size());
}

Evaluation evaluate_run(const EvaluationRequest& request) {
  const std::filesystem::path folder =
      std::filesystem::absolute(find_checkpoint(request.run, request.which)).lexically_normal();
  Checkpoint checkpoint = read_checkpoint(folder, Parts::weights);
  CheckpointHeader& header = checkpoint.header;
  keep_every(request.keep_every, header);
  Network network = load_network(checkpoint, request.engine);
  network.engine.threads = thread_count(request.engine.threads);
  TaskOptions& task = header.config.task;
  if (!request.data_path.empty()) {
    task.path = request.data_path;
    task.train_path = task.validation_path = task.test_path = "";
  }
  const TaskData data = load_task(task, network.engine.threads, &header.facts);
  const Examples& examples = request.split == "train"        ? data.train
                             : request.split == "validation" ? data.validation
                                                             : data.test;
  Evaluation out;
  Workspace workspace;
  out.scores = evaluate(network, workspace,
                        loss_options(header.config.training, header.facts.shape), examples);
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
