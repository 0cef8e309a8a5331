#include "rotrnn/training/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <type_traits>

#include "rotrnn/base/peak_memory.h"
#include "rotrnn/base/text/number.h"
#include "rotrnn/io/atomic_file.h"
#include "rotrnn/io/folder_lock.h"
#include "rotrnn/layers/registry.h"
#include "rotrnn/training/batch.h"
#include "rotrnn/training/checkpoint/network_checkpoint.h"
#include "rotrnn/training/checkpoint/run_folder.h"
#include "rotrnn/training/checkpoint/saver.h"
#include "rotrnn/training/evaluate/evaluate_network.h"
#include "rotrnn/training/evaluate/observe.h"
#include "rotrnn/training/evaluate/observe_scores.h"
#include "rotrnn/training/frontend_statistics.h"
#include "rotrnn/training/guard.h"
#include "rotrnn/training/loader.h"
#include "rotrnn/training/metrics.h"
#include "rotrnn/training/run_data.h"
#include "rotrnn/training/schedule.h"

namespace rotrnn {
namespace {

using Json = nlohmann::ordered_json;

// To measure hidden states on: a few sequences represent all.
constexpr int64_t kNormSequences = 16, kNormTokens = 1 << 16;

double now() {
  using namespace std::chrono;
  return duration<double>(steady_clock::now().time_since_epoch()).count();
}

void check_trains(const Config& config) {
  if (config.model.body == Body::blocks) return;
  throw std::invalid_argument(
      "model.body = \"features\" is fitted in closed form, not trained: use rotrnn fit");
}

class Trainer {
 public:
  Trainer(const TrainRequest& request, const TrainObserver& observer)
      : request_(request),
        observer_(observer),
        options_(request.config.training),
        group_(request.group ? *request.group : alone_),
        threads_(thread_count(options_.threads > 0 ? options_.threads : group_.threads())),
        started_(now()),
        data_(load_task(request.config.task, threads_)),
        network_(with_length(request.config.model, data_), data_.facts.shape,
                 static_cast<uint64_t>(options_.seed)),
        optimiser_(network_.layout()),
        gradients_(network_.layout()),
        guard_(network_.weights()),
        steps_per_epoch_(make_sampler(request.config, data_).steps_per_epoch()),
        loss_(loss_options(options_, data_.facts.shape)),
        training_loss_(loss_) {
    network_.engine = options_.engine();
    network_.engine.threads = threads_;
    // With what was chosen for it, so that the run keeps its meaning.
    request_.config.model.frontend = network_.options().frontend;
    if (options_.class_weights == ClassWeights::balanced) {
      training_loss_.class_weights = balanced_weights(data_);
    }
    if (!group_.alone()) join_group();
  }

  // Takes over the weights of another run, before anything is written.
  void take_over() {
    if (request_.resume || request_.init_from.empty()) return;
    const auto folder = find_checkpoint(request_.init_from, Which::best);
    const bool head = take_weights(folder, network_.weights());
    taken_ = fmt::format("weights from {}{}", folder.string(), head ? "" : ", with a new head");
  }

  TrainOutcome run() {
    if (group_.first()) {
      announce();
      begin();
      if (!request_.resume && taken_.empty()) learn_frontend(network_, data_.train);
      metrics_ = std::make_unique<MetricsLog>(
          request_.out / "metrics.jsonl", request_.resume ? state_.step : -1,
          options_.tensorboard ? TensorBoard::yes : TensorBoard::no);
      if (!request_.resume && options_.norms_every > 0) write_norms();
      if (!request_.resume) write_inside();
      // Otherwise, if killed before its first checkpoint, it would go on without these weights.
      if (!taken_.empty()) write(kLast);
    }
    share_state();
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
    evaluate(network_, workspace_, loss_, data_.validation);
    timing.validation = now() - begin;
    timing.test = timing.validation * static_cast<double>(data_.test.total_length()) /
                  static_cast<double>(data_.validation.total_length());
    return timing;
  }

 private:
  TrainOutcome steps() {
    while (state_.step < options_.steps) {
      step();
      saver_.check();
      if (options_.norms_every > 0 && state_.step % options_.norms_every == 0) write_norms();
      const bool last = state_.step == options_.steps;
      if (last || state_.step % options_.evaluate_every == 0) evaluate_now();
      const bool stop = group_.alone() ? observer_.stop && observer_.stop() : stop_;
      save_if_due(last || stop);
      if (stop && !last) break;
    }
    saver_.wait();
    return state_.step < options_.steps ? outcome(false) : finish();
  }

  // The processes must have the same data, and each at least one sequence.
  void join_group() {
    const int64_t least = options_.batch / options_.accumulate;
    if (options_.batch_tokens == 0 && least < group_.size()) {
      throw std::invalid_argument(fmt::format(
          "training.batch: {} sequences{} cannot be shared by {} ranks; a batch is that of all "
          "ranks together, and each rank needs at least one sequence of it",
          options_.batch,
          options_.accumulate > 1 ? fmt::format(" in {} parts", options_.accumulate) : "",
          group_.size()));
    }
    group_.barrier(/*patient=*/true);  // some read data faster than others
    const std::string mine = fmt::format(
        "{}, {} and {} sequences with {} tokens", data_.train.size(), data_.validation.size(),
        data_.test.size(),
        data_.train.total_length() + data_.validation.total_length() + data_.test.total_length());
    const std::string theirs = group_.broadcast(mine);
    if (mine != theirs) {
      throw std::runtime_error(fmt::format(
          "rank {} has read {}, and rank 0 {}; the data must be the same on all machines",
          group_.rank(), mine, theirs));
    }
    network_.engine.reduce = [this](double* values, size_t count) {
      if (placeholder_) std::fill_n(values, count, 0.0);
      group_.all_reduce(values, count);
    };
  }

  // Sends what rank 0 starts from to all: only it reads the run folder.
  void share_state() {
    if (group_.alone()) return;
    static_assert(std::is_trivially_copyable_v<TrainState>);
    group_.broadcast(&state_, sizeof state_);
    Weights& w = network_.weights();
    for (FlatArray* array : {&w.parameters(), &optimiser_.first(), &optimiser_.second()}) {
      group_.broadcast(array->data(), array->size() * sizeof(float));
    }
    group_.broadcast(w.buffers().data(), w.buffers().size() * sizeof(float));
    group_.broadcast(w.integers().data(), w.integers().size() * sizeof(int64_t));
  }

  void start_loader(int64_t end) {
    loader_ = std::make_unique<BatchLoader>(
        data_.train, data_.facts.shape, make_sampler(request_.config, data_), state_.step, end,
        options_.accumulate, group_.shard(), training_loss_.class_weights);
  }

  void say(const std::string& text) const {
    if (observer_.message && group_.first()) observer_.message(text);
  }
  void warn(const std::string& text) const {
    if (observer_.warning && group_.first()) observer_.warning(text);
  }

  void announce() const {
    const ModelOptions& m = request_.config.model;
    for (const std::string& text : data_.messages) say(text);
    say(fmt::format(
        "{}: {} train, {} validation, {} test sequences, {:.0f} tokens on average",
        request_.config.task.name, data_.train.size(), data_.validation.size(), data_.test.size(),
        static_cast<double>(data_.train.total_length()) / static_cast<double>(data_.train.size())));
    say(fmt::format("{}: {} blocks, width {}, {}, {} parameters; {} kernels, {}", m.layer, m.depth,
                    m.width, describe_layer(m), parameter_count(), name_of(options_.kernels),
                    counted(threads_, "thread")));
    if (m.frontend.used()) {
      say(fmt::format("front end: {}", describe_frontend(network_.options().frontend)));
    }
    if (!group_.alone()) {
      say(fmt::format("{} ranks share every batch of {}", group_.size(),
                      options_.batch_tokens > 0
                          ? fmt::format("up to {} tokens", options_.batch_tokens)
                          : fmt::format("{} sequences", options_.batch)));
    }
    say(fmt::format("run folder: {}", request_.out.string()));
  }

  int64_t parameter_count() const { return static_cast<int64_t>(network_.layout().size); }

  void begin() {
    if (request_.resume) resume();
    if (!taken_.empty()) say(taken_);
    tidy_run(request_.out);
    write_file_atomically(request_.out / "config.toml", to_toml(request_.config));
    if (!request_.config.task.path.empty() || !request_.config.task.train_path.empty()) {
      write_file_atomically(request_.out / "splits.tsv", splits_text(data_));
    }
  }

  void resume() {
    const Resumable found = find_resumable(request_.out, Parts::all);
    const Checkpoint& checkpoint = found.checkpoint;
    state_ = checkpoint.header.state;
    load_checkpoint(checkpoint, network_.weights(), &optimiser_);
    for (const std::string& text : found.damage) warn(text);
    if (!found.damage.empty()) {
      warn(fmt::format("going on from an older checkpoint, {}", checkpoint.folder.string()));
    }
    settle(request_.out, found);
    say(fmt::format("resumed {} at step {}{}", request_.out.string(), state_.step,
                    checkpoint.checked ? ""
                                       : "; its checkpoint is of an older format, which has "
                                         "no checksums"));
    if (state_.best_step >= 0) check_best();
  }

  // Now, and not at the end, when it is needed.
  void check_best() {
    try {
      const auto folder = existing_folder(request_.out / kBest);
      read_checkpoint(folder.empty() ? request_.out / kBest : folder, Parts::weights);
    } catch (const std::runtime_error& error) {
      warn(
          fmt::format("{}. The best weights will be those of the steps that follow", error.what()));
      state_.best_step = -1;
    }
  }

  // Forward and backward over one batch, in as many parts as requested. Afterwards every process
  // has the gradient of the mean loss over the whole batch.
  double gradients(const std::vector<Batch>& parts, int64_t* tokens) {
    double loss = 0;
    bool first = true;  // its gradients are the sum so far
    for (const Batch& batch : parts) {
      placeholder_ = batch.placeholder;
      const bool separate = !first || placeholder_;
      if (separate && !part_) part_.emplace(network_.layout());
      FlatArray& out = separate ? *part_ : gradients_;
      const DropoutKey dropout{static_cast<uint64_t>(options_.seed), state_.step, batch.sequences};
      const double part_loss =
          train_pass(network_, workspace_, batch, dropout, training_loss_, out, dy_);
      *tokens += batch.step_tokens;
      if (placeholder_) continue;
      loss += part_loss;
      if (!first) add(gradients_, *part_);
      first = false;
    }
    if (first) std::fill(gradients_.all().begin(), gradients_.all().end(), 0.0f);
    group_.all_reduce(gradients_.data(), gradients_.size());
    return loss;
  }

  // The loss of all processes, and whether one was asked to stop. The norm is the same for all
  // except for rounding, which may depend on the number of threads and must not make them differ.
  // Returns whether the step may be taken.
  bool agree(double* loss, double* norm) {
    double bad = guard_.finite() ? 0 : 1;
    if (!group_.alone()) {
      double sums[] = {*loss, *norm, bad, observer_.stop && observer_.stop() ? 1.0 : 0.0};
      group_.all_reduce(sums, std::size(sums));
      *loss = sums[0];
      *norm = sums[1] / group_.size();
      bad = sums[2];
      stop_ = sums[3] > 0;
    }
    return bad == 0 && std::isfinite(*loss) && std::isfinite(*norm);
  }

  void step() {
    const double begin = now();
    int64_t tokens = 0;
    const std::vector<Batch> parts = loader_->next();
    guard_.remember();
    double loss = gradients(parts, &tokens), norm = norm_of(gradients_);
    const bool finite = agree(&loss, &norm);
    if (!finite) skip(loss, norm, parts);
    if (options_.clip > 0 && norm > options_.clip) scale(gradients_, options_.clip / norm);
    const double factor = learning_rate_factor(options_, steps_per_epoch_, state_.step);
    const double lr = factor * options_.global_lr, recurrent = factor * options_.recurrent_lr;
    ++state_.step;
    state_.tokens += tokens;
    if (finite) {
      // Counts its own steps: a skipped one does not enter the moments.
      optimiser_.step(state_.step - state_.skipped, {lr, recurrent, options_.weight_decay},
                      gradients_, network_.weights(), threads_);
      state_.loss_sum += loss;
      ++state_.loss_count;
      state_.skipped_in_a_row = 0;
    }
    window_tokens_ += tokens;
    window_seconds_ += now() - begin;
    ++window_steps_;
    report(loss, norm, lr, recurrent);
  }

  // Leaves the network as it was before the step; throws when this goes on for too long.
  void skip(double loss, double norm, const std::vector<Batch>& parts) {
    NonFinite found = find_non_finite(network_.weights(), optimiser_, gradients_, guard_, parts);
    guard_.undo();
    ++state_.skipped;
    ++state_.skipped_in_a_row;
    found.step = state_.step + 1;
    found.loss = loss;
    found.gradient_norm = norm;
    if (metrics_) metrics_->write(to_json(found));
    const std::string text = describe(found, data_.train);
    if (found.in_weights || state_.skipped_in_a_row >= options_.non_finite_limit) {
      if (metrics_) metrics_->sync();
      throw std::runtime_error(fmt::format(
          "training stopped: no finite loss and gradient in the last {} step{}. {}. Lower "
          "training.global_lr and training.recurrent_lr, or set training.clip = 1, and start from "
          "the last good weights with --init-from {}",
          state_.skipped_in_a_row, state_.skipped_in_a_row == 1 ? "" : "s", text,
          request_.out.string()));
    }
    if (state_.skipped <= 10 || state_.skipped % 100 == 0) warn("skipped " + text);
  }

  void report(double loss, double norm, double lr, double recurrent) {
    const double rate = static_cast<double>(window_tokens_) / window_seconds_;
    if (observer_.step && group_.first()) {
      const double left = static_cast<double>(options_.steps - state_.step) * window_seconds_ /
                          static_cast<double>(window_steps_);
      observer_.step({state_.step, options_.steps, loss, rate, left, state_.skipped});
    }
    if (metrics_ && (state_.step % options_.log_every == 0 || state_.step == options_.steps)) {
      metrics_->write({{"step", state_.step},
                       {"split", "train"},
                       {"loss", state_.loss_sum / static_cast<double>(state_.loss_count)},
                       {"global_lr", lr},
                       {"recurrent_lr", recurrent},
                       {"gradient_norm", norm},
                       {"tokens", state_.tokens},
                       {"skipped", state_.skipped},
                       {"seconds", now() - started_},
                       {"tokens_per_second", rate},
                       {"memory_mb", resident_mb()}});
      state_.loss_sum = 0;
      state_.loss_count = 0;
    }
    if (window_steps_ >= 50) {  // forget half, so that the rate stays current
      window_tokens_ /= 2;
      window_seconds_ /= 2;
      window_steps_ /= 2;
    }
  }

  // The size of the hidden states on the first validation sequences, as training sees them.
  void write_norms() {
    if (!group_.first()) return;
    std::vector<int64_t> numbers;
    int64_t tokens = 0;
    for (int64_t i = 0; i < std::min(kNormSequences, data_.validation.size()); ++i) {
      tokens += data_.validation.length(i);
      if (i > 0 && tokens > kNormTokens) break;
      numbers.push_back(i);
    }
    const Batch batch = make_batch(data_.validation, data_.facts.shape, numbers, false);
    const Json line = norms_line(network_, workspace_, batch.input(), state_.step);
    if (!line.is_null()) metrics_->write(line);
  }

  // What the inside of the network looks like now, for the board.
  void write_inside() {
    if (!group_.first()) return;
    if (options_.norms_every == 0) write_norms();
    metrics_->write(lambda_line(network_, state_.step));
  }

  void write_scores(const char* split, const Scores& scores) {
    if (!group_.first()) return;
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
    add_confusion(line, scores, data_.facts.classes);
    line["seconds"] = now() - started_;
    metrics_->write(line);
  }

  void evaluate_now() {
    const Scores scores = evaluate(network_, workspace_, loss_, data_.validation, &group_);
    write_scores("validation", scores);
    write_inside();
    const double score = scores.score();
    const bool best = state_.best_step < 0 || score > state_.best_score;
    if (best) {
      state_.best_score = score;
      state_.best_step = state_.step;
      save(kBest);
    }
    if (observer_.evaluation && group_.first()) observer_.evaluation({state_.step, scores, best});
  }

  void save_if_due(bool now) {
    const int64_t keep = options_.keep_checkpoint_every;
    if (keep > 0 && state_.step % keep == 0) save(kept_checkpoint("", state_.step));
    if (now || state_.step % options_.checkpoint_every == 0) save(kLast);
  }

  // All except "best", which is for use, have moments and can be resumed.
  void save(const std::filesystem::path& which) {
    const std::string bad = non_finite_parameter(network_.weights(), optimiser_);
    if (!bad.empty()) {
      throw std::runtime_error(
          fmt::format("training stopped at step {}: \"{}\" is not finite, so no checkpoint was "
                      "written; lower training.global_lr and training.recurrent_lr. {} keeps the "
                      "last good one",
                      state_.step, bad, request_.out.string()));
    }
    // Different CPUs round differently: from here on all ranks have what a resumed run will have.
    if (which != kBest) share_state();
    if (group_.first()) write(which);
  }

  void write(const std::filesystem::path& which) {
    saver_.save(request_.out / which, network_.weights(), which == kBest ? nullptr : &optimiser_,
                {request_.config, data_.facts, state_, ""},
                which == kLast ? request_.out / kPrevious : std::filesystem::path(),
                [this] { metrics_->sync(); });
  }

  TrainOutcome outcome(bool finished) const {
    TrainOutcome out;
    out.finished = finished;
    out.step = state_.step;
    out.best_step = state_.best_step;
    out.best_score = state_.best_score;
    out.parameters = parameter_count();
    out.skipped = state_.skipped;
    out.seconds = now() - started_;
    return out;
  }

  TrainOutcome finish() {
    if (group_.first()) {
      load_checkpoint(read_checkpoint(find_checkpoint(request_.out, Which::best), Parts::weights),
                      network_.weights(), nullptr);
    }
    share_state();
    TrainOutcome out = outcome(true);
    out.test = evaluate(network_, workspace_, loss_, data_.test, &group_);
    if (out.test.classes) out.majority = majority(data_.test, data_.facts.shape.outputs);
    out.classes = data_.facts.classes;
    write_scores("test", out.test);
    if (metrics_) metrics_->sync();
    out.seconds = now() - started_;
    return out;
  }

  TrainRequest request_;
  TrainObserver observer_;
  TrainingOptions options_;
  Group alone_;
  Group& group_;
  int threads_;
  double started_;
  TaskData data_;
  Network network_;
  Workspace workspace_;
  Optimiser optimiser_;
  FlatArray gradients_;
  std::optional<FlatArray> part_;  // gradients of a part of a step that is not its first
  std::vector<float> dy_;
  StepGuard guard_;
  int64_t steps_per_epoch_;
  LossOptions loss_, training_loss_;  // the latter with the weights of classes
  TrainState state_;
  std::string taken_;  // where the initial weights are from; empty: drawn
  std::unique_ptr<MetricsLog> metrics_;
  bool placeholder_ = false;  // this process has no examples of the part
  bool stop_ = false;         // some process was asked to stop
  int64_t window_tokens_ = 0, window_steps_ = 0;
  double window_seconds_ = 0;
  CheckpointSaver saver_;                // its thread writes the metrics to the disk
  std::unique_ptr<BatchLoader> loader_;  // last: it reads the data
};

}  // namespace

TrainOutcome train(const TrainRequest& request, const TrainObserver& observer) {
  check_trains(request.config);
  const bool writes = request.group == nullptr || request.group->first();
  // Before the data are read, but no folder is made for a run without data.
  std::optional<FolderLock> lock;
  if (writes && std::filesystem::exists(request.out)) lock.emplace(request.out);
  Trainer trainer(request, observer);
  if (writes) trainer.take_over();
  if (writes && !lock) {
    std::filesystem::create_directories(request.out);
    lock.emplace(request.out);
  }
  return trainer.run();
}

RunTiming time_run(const Config& config, double seconds, const std::function<bool()>& stop) {
  check_trains(config);
  TrainRequest request;
  request.config = config;
  TrainObserver observer;
  observer.stop = stop;
  return Trainer(request, observer).time(seconds);
}

}  // namespace rotrnn
