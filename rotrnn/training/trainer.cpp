#include "rotrnn/training/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <stdexcept>

#include "rotrnn/data/sampler.h"
#include "rotrnn/io/atomic_file.h"
#include "rotrnn/io/folder_lock.h"
#include "rotrnn/layers/registry.h"
#include "rotrnn/training/batch.h"
#include "rotrnn/training/loader.h"
#include "rotrnn/training/memory.h"
#include "rotrnn/training/metrics.h"
#include "rotrnn/training/network.h"
#include "rotrnn/training/schedule.h"

namespace rotrnn {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kNormSequences = 16;  // to measure hidden states on

double now() {
  using namespace std::chrono;
  return duration<double>(steady_clock::now().time_since_epoch()).count();
}

// Which example is in which split, for whoever wants to know.
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

// S4 computes its kernel for the longest sequence there is.
ModelOptions with_length(ModelOptions options, const TaskData& data) {
  int64_t& longest = options.s4.max_length;
  if (longest > 0) return options;
  for (const Examples* examples : {&data.train, &data.validation, &data.test}) {
    for (int64_t i = 0; i < examples->size(); ++i) {
      for (int64_t k = 0; k < examples->towers(); ++k) {
        longest = std::max(longest, examples->length(i, k));
      }
    }
  }
  return options;
}

class Trainer {
 public:
  Trainer(const TrainRequest& request, const TrainObserver& observer)
      : request_(request),
        observer_(observer),
        options_(request.config.training),
        threads_(use_threads(options_.threads)),
        started_(now()),
        data_(load_task(request.config.task, threads_)),
        model_(with_length(request.config.model, data_), data_.facts.shape,
               static_cast<uint64_t>(options_.seed)),
        optimiser_(*model_),
        steps_per_epoch_(make_sampler().steps_per_epoch()) {
    model_->engine = options_.engine();
    model_->train();
    if (options_.class_weights == ClassWeights::balanced) class_weights_ = balanced_weights();
  }

  TrainOutcome run() {
    announce();
    begin();
    metrics_ = std::make_unique<MetricsLog>(request_.out / "metrics.jsonl",
                                            request_.resume ? state_.step : -1);
    if (!request_.resume && options_.norms_every > 0) write_norms();
    start_loader(options_.steps);
    const PeakMemory memory;
    TrainOutcome out = steps();
    out.peak_memory_mb = memory.increase_mb();
    return out;
  }

  RunTiming time(double seconds) {
    RunTiming timing;
    timing.setup = now() - started_;
    start_loader(std::numeric_limits<int64_t>::max());
    constexpr int kWarmUp = 2, kLeast = 5;  // the first steps touch fresh memory
    double begin = 0;
    for (int64_t i = 0; i < kWarmUp + kLeast || now() - begin < seconds; ++i) {
      if (i == kWarmUp) begin = now();
      step();
      if (observer_.stop && observer_.stop()) return {};
    }
    timing.steps = state_.step - kWarmUp;
    timing.step = (now() - begin) / static_cast<double>(timing.steps);
    begin = now();
    evaluate(*model_, data_.validation);
    timing.validation = now() - begin;
    timing.test = timing.validation * static_cast<double>(data_.test.total_length()) /
                  static_cast<double>(data_.validation.total_length());
    return timing;
  }

 private:
  TrainOutcome steps() {
    while (state_.step < options_.steps) {
      step();
      if (options_.norms_every > 0 && state_.step % options_.norms_every == 0) write_norms();
      const bool last = state_.step == options_.steps;
      if (last || state_.step % options_.evaluate_every == 0) evaluate_now();
      const bool stop = observer_.stop && observer_.stop();
      if (last || stop || state_.step % options_.checkpoint_every == 0) save("last");
      if (stop && !last) return outcome(false);
    }
    return finish();
  }

  Sampler make_sampler() const {
    const auto seed = static_cast<uint64_t>(options_.seed);
    const TaskOptions& task = request_.config.task;
    if (task.target == TaskTarget::forecast && task.window == 0 &&
        data_.train.size() < options_.batch) {
      throw std::invalid_argument(
          fmt::format("training.batch is {} but there are {} series to train on; task.window cuts "
                      "them into more examples",
                      options_.batch, data_.train.size()));
    }
    if (options_.batch_tokens == 0) return {data_.train.size(), options_.batch, seed};
    std::vector<int64_t> lengths;
    for (int64_t i = 0; i < data_.train.size(); ++i) lengths.push_back(data_.train.length(i));
    return {std::move(lengths), options_.batch_tokens, seed};
  }

  void start_loader(int64_t end) {
    loader_ = std::make_unique<BatchLoader>(data_.train, data_.facts.shape, make_sampler(),
                                            state_.step, end, options_.accumulate);
  }

  // Every class counts the same, however many examples it has; on average a target weighs 1.
  torch::Tensor balanced_weights() const {
    const DataShape& shape = data_.facts.shape;
    if (shape.target != TargetKind::classes) {
      throw std::invalid_argument(
          "training.class_weights: \"balanced\" is for classes, and this task tells values");
    }
    std::vector<double> count(static_cast<size_t>(shape.outputs));
    std::vector<int64_t> labels;
    double total = 0;
    for (int64_t i = 0; i < data_.train.size(); ++i) {
      labels.assign(1, data_.train.label(i));
      if (shape.per_token) {
        labels.resize(static_cast<size_t>(data_.train.length(i)));
        data_.train.write_token_labels(i, labels.data());
      }
      for (const int64_t label : labels) ++count[static_cast<size_t>(label)];
      total += static_cast<double>(labels.size());
    }
    const auto present = static_cast<double>(
        std::count_if(count.begin(), count.end(), [](double c) { return c > 0; }));
    for (double& c : count) c = c > 0 ? total / (present * c) : 0;
    return torch::tensor(count, torch::kFloat32);
  }

  void say(const std::string& text) const {
    if (observer_.message) observer_.message(text);
  }

  void announce() const {
    const ModelOptions& m = request_.config.model;
    for (const std::string& text : data_.messages) say(text);
    say(fmt::format(
        "{}: {} train, {} validation, {} test sequences, {:.0f} tokens on average",
        request_.config.task.name, data_.train.size(), data_.validation.size(), data_.test.size(),
        static_cast<double>(data_.train.total_length()) / static_cast<double>(data_.train.size())));
    say(fmt::format("{}: {} blocks, width {}, {}, {} parameters; {} kernels, {} threads", m.layer,
                    m.depth, m.width, describe_layer(m), parameter_count(),
                    model_->uses_fused() ? "fused" : "reference", threads_));
    say(fmt::format("run folder: {}", request_.out.string()));
  }

  int64_t parameter_count() const {
    int64_t count = 0;
    for (const auto& slot : optimiser_.slots()) count += slot.parameter.numel();
    return count;
  }

  // Starts, resumes, or takes over weights.
  void begin() {
    std::filesystem::create_directories(request_.out);
    lock_.emplace(request_.out);
    if (request_.resume) {
      const auto folder = find_checkpoint(request_.out, Which::last);
      state_ = read_header(folder).state;
      load_checkpoint(folder, *model_, &optimiser_);
      say(fmt::format("resumed {} at step {}", request_.out.string(), state_.step));
    } else if (!request_.init_from.empty()) {
      const auto folder = find_checkpoint(request_.init_from, Which::best);
      const bool head = take_weights(folder, *model_);
      say(fmt::format("weights from {}{}", folder.string(), head ? "" : ", with a new head"));
    }
    write_file_atomically(request_.out / "config.toml", to_toml(request_.config));
    if (!request_.config.task.path.empty() || !request_.config.task.train_path.empty()) {
      write_file_atomically(request_.out / "splits.tsv", splits_text(data_));
    }
  }

  // Forward and backward over one batch, in as many parts as asked for.
  double gradients(int64_t* tokens) {
    optimiser_.zero_grad();
    const std::vector<Batch> parts = loader_->next();
    double loss = 0, told = 0;
    for (const Batch& batch : parts) told += static_cast<double>(batch.told());
    for (const Batch& batch : parts) {
      const Pass pass{static_cast<uint64_t>(options_.seed), state_.step, batch.sequences};
      const torch::Tensor y = model_->forward(batch.input, pass).y;
      const torch::Tensor part_loss =
          loss_of(data_.facts.shape.target, y, batch.targets, class_weights_) *
          (static_cast<double>(batch.told()) / told);
      part_loss.backward();
      loss += part_loss.item<double>();
      *tokens += batch.input.layout->tokens();
    }
    return loss;
  }

  void step() {
    const double begin = now();
    int64_t tokens = 0;
    const double loss = gradients(&tokens);
    const double norm = optimiser_.gradient_norm();
    if (!std::isfinite(loss) || !std::isfinite(norm)) {
      throw std::runtime_error(fmt::format(
          "training stopped: the loss is {} and the gradient norm {} at step {}; lower "
          "training.global_lr, or set training.clip = 1. {} keeps the last good checkpoint",
          loss, norm, state_.step + 1, request_.out.string()));
    }
    if (options_.clip > 0 && norm > options_.clip) optimiser_.scale_gradients(options_.clip / norm);
    const double factor = learning_rate_factor(options_, steps_per_epoch_, state_.step);
    const double lr = factor * options_.global_lr, recurrent = factor * options_.recurrent_lr;
    optimiser_.step(state_.step + 1, lr, recurrent, options_.weight_decay);

    ++state_.step;
    state_.tokens += tokens;
    state_.loss_sum += loss;
    ++state_.loss_count;
    window_tokens_ += tokens;
    window_seconds_ += now() - begin;
    ++window_steps_;
    report(loss, norm, lr, recurrent);
  }

  void report(double loss, double norm, double lr, double recurrent) {
    const double rate = static_cast<double>(window_tokens_) / window_seconds_;
    if (observer_.step) {
      const double left = static_cast<double>(options_.steps - state_.step) * window_seconds_ /
                          static_cast<double>(window_steps_);
      observer_.step({state_.step, options_.steps, loss, rate, left});
    }
    if (metrics_ && (state_.step % options_.log_every == 0 || state_.step == options_.steps)) {
      metrics_->write({{"step", state_.step},
                       {"split", "train"},
                       {"loss", state_.loss_sum / static_cast<double>(state_.loss_count)},
                       {"global_lr", lr},
                       {"recurrent_lr", recurrent},
                       {"gradient_norm", norm},
                       {"tokens", state_.tokens},
                       {"seconds", now() - started_},
                       {"tokens_per_second", rate}});
      state_.loss_sum = 0;
      state_.loss_count = 0;
    }
    if (window_steps_ >= 50) {  // forget half, so that the rate follows what happens now
      window_tokens_ /= 2;
      window_seconds_ /= 2;
      window_steps_ /= 2;
    }
  }

  // The size of the hidden states on the first validation sequences, as training sees them.
  void write_norms() {
    std::vector<int64_t> numbers(
        static_cast<size_t>(std::min(kNormSequences, data_.validation.size())));
    std::iota(numbers.begin(), numbers.end(), 0);
    const Batch batch = make_batch(data_.validation, data_.facts.shape, numbers);
    Json whole = Json::array(), head = Json::array();
    for (const torch::Tensor& norms : model_->state_norms(batch.input)) {
      whole.push_back(norms.norm(2, -1).mean().item<double>());
      head.push_back(norms.mean().item<double>());
    }
    metrics_->write({{"step", state_.step}, {"split", "norms"}, {"whole", whole}, {"head", head}});
  }

  void write_scores(const char* split, const Scores& scores) {
    Json line{{"step", state_.step}, {"split", split}, {"loss", scores.loss}};
    if (scores.classes) {
      line["accuracy"] = scores.accuracy;
    } else {
      line["mae"] = scores.mae;
      line["mse"] = scores.mse;
      line["naive_mae"] = scores.naive_mae;
      line["naive_mse"] = scores.naive_mse;
    }
    line["examples"] = scores.examples;
    line["seconds"] = now() - started_;
    metrics_->write(line);
  }

  void evaluate_now() {
    const Scores scores = evaluate(*model_, data_.validation);
    write_scores("validation", scores);
    const double score = scores.score();
    const bool best = state_.best_step < 0 || score > state_.best_score;
    if (best) {
      state_.best_score = score;
      state_.best_step = state_.step;
      save("best");
    }
    if (observer_.evaluation) observer_.evaluation({state_.step, scores, best});
  }

  // "last" can be resumed; "best" is for use and needs no moments.
  void save(const std::string& which) {
    metrics_->sync();
    save_checkpoint(request_.out / which, *model_, which == "last" ? &optimiser_ : nullptr,
                    {request_.config, data_.facts, state_, ""});
  }

  TrainOutcome outcome(bool finished) const {
    TrainOutcome out;
    out.finished = finished;
    out.step = state_.step;
    out.best_step = state_.best_step;
    out.best_score = state_.best_score;
    out.parameters = parameter_count();
    out.seconds = now() - started_;
    return out;
  }

  TrainOutcome finish() {
    load_checkpoint(find_checkpoint(request_.out, Which::best), *model_, nullptr);
    TrainOutcome out = outcome(true);
    out.test = evaluate(*model_, data_.test);
    if (out.test.classes) out.majority = majority(data_.test, data_.facts.shape.outputs);
    out.classes = data_.facts.classes;
    write_scores("test", out.test);
    metrics_->sync();
    out.seconds = now() - started_;
    return out;
  }

  TrainRequest request_;
  TrainObserver observer_;
  TrainingOptions options_;
  int threads_;
  double started_;
  TaskData data_;
  SequenceModel model_;
  AdamW optimiser_;
  int64_t steps_per_epoch_;
  torch::Tensor class_weights_;
  TrainState state_;
  std::unique_ptr<MetricsLog> metrics_;
  std::optional<FolderLock> lock_;
  int64_t window_tokens_ = 0, window_steps_ = 0;
  double window_seconds_ = 0;
  std::unique_ptr<BatchLoader> loader_;  // last: it reads the data
};

}  // namespace

TrainOutcome train(const TrainRequest& request, const TrainObserver& observer) {
  return Trainer(request, observer).run();
}

RunTiming time_run(const Config& config, double seconds, const std::function<bool()>& stop) {
  TrainRequest request;
  request.config = config;
  TrainObserver observer;
  observer.stop = stop;
  return Trainer(request, observer).time(seconds);
}

}  // namespace rotrnn
