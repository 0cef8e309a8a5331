#include "rotrnn/training/network.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "rotrnn/io/atomic_file.h"
#include "rotrnn/kernels/threads.h"
#include "rotrnn/training/batch.h"
#include "rotrnn/training/tensor_file.h"

namespace rotrnn {
namespace {

// Tokens of one evaluation batch: enough to keep the cores busy, few enough for any memory.
constexpr int64_t kEvaluationTokens = 32768;

NamedTensors moments_of(const AdamW& optimiser) {
  NamedTensors tensors;
  for (const auto& slot : optimiser.slots()) {
    tensors.emplace_back("first." + slot.name, slot.first);
    tensors.emplace_back("second." + slot.name, slot.second);
  }
  return tensors;
}

}  // namespace

Scores evaluate(SequenceModelImpl& model, const Examples& examples) {
  torch::NoGradGuard no_grad;
  const bool was_training = model.is_training();
  model.eval();
  // By length, so that a batch holds sequences of one kind; the order does not change the scores.
  std::vector<int64_t> order(examples.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return examples.length(a) < examples.length(b); });
  Scores scores;
  scores.examples = examples.size();
  for (size_t begin = 0; begin < order.size();) {
    size_t end = begin;
    for (int64_t tokens = 0; end < order.size(); ++end) {
      tokens += examples.length(order[end]);
      if (end > begin && tokens > kEvaluationTokens) break;
    }
    const Batch batch = make_batch(examples, model.shape(), {&order[begin], end - begin});
    const torch::Tensor y = model.forward(batch.input).y;
    scores.loss += loss_of(model.shape().target, y, batch.targets).item<double>() *
                   static_cast<double>(end - begin);
    scores.accuracy += y.argmax(-1).eq(batch.targets).sum().item<double>();
    begin = end;
  }
  const double count = static_cast<double>(std::max<int64_t>(scores.examples, 1));
  scores.loss /= count;
  scores.accuracy /= count;
  model.train(was_training);
  return scores;
}

void save_checkpoint(const std::filesystem::path& folder, const SequenceModelImpl& model,
                     const AdamW* optimiser, const CheckpointHeader& header) {
  const std::filesystem::path fresh = folder.string() + ".new";
  std::filesystem::remove_all(fresh);
  std::filesystem::create_directories(fresh);
  save_tensors(fresh / kWeightsFile, state_of(model), {{"format", "rotrnn"}});
  if (optimiser) save_tensors(fresh / kOptimiserFile, moments_of(*optimiser));
  write_file_atomically(fresh / kStateFile, header_text(header));
  replace_folder(fresh, folder);
}

void load_checkpoint(const std::filesystem::path& folder, SequenceModelImpl& model,
                     AdamW* optimiser) {
  load_tensors(folder / kWeightsFile, state_of(model));
  if (optimiser) load_tensors(folder / kOptimiserFile, moments_of(*optimiser));
}

SequenceModel load_model(const std::filesystem::path& folder, const CheckpointHeader& header,
                         const EngineOptions& engine) {
  SequenceModel model(header.config.model, header.facts.shape, 0);
  load_checkpoint(folder, *model, nullptr);
  model->engine = engine;
  model->eval();
  return model;
}

bool take_weights(const std::filesystem::path& folder, SequenceModelImpl& model) {
  const SafeTensorFile file(folder / kWeightsFile);
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

Evaluation evaluate_run(const std::filesystem::path& run, Which which, const std::string& split,
                        const std::string& data_path, const EngineOptions& engine) {
  const auto folder = find_checkpoint(run, which);
  CheckpointHeader header = read_header(folder);
  const int used = use_threads(engine.threads);
  SequenceModel model = load_model(folder, header, engine);
  if (!data_path.empty()) header.config.task.path = data_path;
  const TaskData data = load_task(header.config.task, used);
  const Examples& examples = split == "train"        ? data.train
                             : split == "validation" ? data.validation
                                                     : data.test;
  Evaluation out;
  out.scores = evaluate(*model, examples);
  out.majority = majority(examples, header.facts.shape.outputs);
  out.step = header.state.step;
  return out;
}

}  // namespace rotrnn
