#include "rotrnn/training/fit/fit_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <optional>
#include <stdexcept>

#include "rotrnn/base/peak_memory.h"
#include "rotrnn/fit/band_source.h"
#include "rotrnn/fit/sample.h"
#include "rotrnn/network/features/feature_tensors.h"
#include "rotrnn/training/checkpoint/network_checkpoint.h"
#include "rotrnn/training/evaluate/evaluate_network.h"
#include "rotrnn/training/fit/fit_data.h"
#include "rotrnn/training/fit/write_fit.h"

namespace rotrnn {
namespace {

// Series as long as this, or this many hops, may have something to say in bands.
constexpr double kBandSteps = 256, kBandHops = 8;

// Of more steps than this, inputs are compared by a fit to some of the examples.
constexpr size_t kCompareSteps = 4'000'000, kCompareExamples = 500;

constexpr double kShares[] = {0.1, 0.25, 0.5, 1};

double now() {
  using namespace std::chrono;
  return duration<double>(steady_clock::now().time_since_epoch()).count();
}

double seconds_since(double begin) {
  return now() - begin;
}

/// A way to read the series: what is in front of the bank.
struct Variant {
  std::string name;
  FrontendOptions frontend;
  fit::Bands bands;  // with a front end
  fit::Source source;
  fit::BankOptions bank;
};

size_t total_steps(const fit::Source& source) {
  size_t sum = 0;
  for (size_t i = 0; i < source.count; ++i) sum += source.length(i);
  return sum;
}

Variant samples_variant(const fit::Source& samples, const FeatureOptions& features) {
  Variant v;
  v.name = "samples";
  v.source = samples;
  v.bank.differences = features.differences;
  return v;
}

Variant bands_variant(const fit::Source& samples, const FrontendOptions& frontend, uint64_t seed,
                      int threads) {
  Variant v;
  v.name = "bands";
  v.frontend = frontend;
  v.bands = fit::band_source(samples, frontend, seed, threads);
  v.source = v.bands.source;
  v.bank.differences = false;
  v.bank.neighbours = 3;
  v.bank.bands = static_cast<size_t>(frontend.bands);
  return v;
}

/// Some of the sequences, by number, and their targets.
fit::Source part_of(const fit::Source& source, const std::vector<size_t>& numbers) {
  fit::Source out = source;
  out.count = numbers.size();
  out.length = [source, numbers](size_t i) { return source.length(numbers[i]); };
  out.read = [source, numbers](size_t i, float* to) { source.read(numbers[i], to); };
  return out;
}

fit::Targets part_of(const fit::Targets& targets, const std::vector<size_t>& numbers) {
  fit::Targets out;
  out.outputs = targets.outputs;
  for (const size_t i : numbers) {
    if (!targets.classes.empty()) out.classes.push_back(targets.classes[i]);
    if (!targets.groups.empty()) out.groups.push_back(targets.groups[i]);
    if (!targets.weights.empty()) out.weights.push_back(targets.weights[i]);
    for (size_t k = 0; k < targets.outputs && !targets.values.empty(); ++k) {
      out.values.push_back(targets.values[i * targets.outputs + k]);
    }
  }
  return out;
}

/// A prefix of each series.
fit::Source prefixes(const fit::Source& source, double share) {
  fit::Source out = source;
  out.length = [source, share](size_t i) {
    const double steps = std::ceil(share * static_cast<double>(source.length(i)));
    return std::max<size_t>(1, static_cast<size_t>(steps));
  };
  out.read = [source, out](size_t i, float* to) {
    std::vector<float> whole(source.length(i) * source.channels);
    source.read(i, whole.data());
    std::copy_n(whole.begin(), out.length(i) * source.channels, to);
  };
  return out;
}

/// Each series four times: its prefixes and itself. Those of one series belong to one group.
fit::Source with_prefixes(const fit::Source& source) {
  const size_t copies = std::size(kShares);
  std::vector<fit::Source> parts;
  for (const double share : kShares) parts.push_back(prefixes(source, share));
  fit::Source out = source;
  out.count = copies * source.count;
  out.length = [parts, copies](size_t i) { return parts[i % copies].length(i / copies); };
  out.read = [parts, copies](size_t i, float* to) { parts[i % copies].read(i / copies, to); };
  return out;
}

fit::Targets with_prefixes(const fit::Targets& targets, size_t count) {
  std::vector<size_t> numbers;
  for (size_t i = 0; i < count; ++i) numbers.insert(numbers.end(), std::size(kShares), i);
  fit::Targets out = part_of(targets, numbers);
  if (out.groups.empty()) out.groups.assign(numbers.begin(), numbers.end());
  return out;
}

void check_task_of(const DataShape& shape) {
  if (shape.input != InputKind::tokens && shape.towers == 1 && !shape.per_token) return;
  throw std::invalid_argument(fmt::format(
      "fit: it is for one answer per series of numbers, and this task has {}; use rotrnn train",
      shape.input == InputKind::tokens ? "texts or token numbers"
      : shape.towers != 1              ? "pairs"
                                       : "an output for every step"));
}

class FitRun {
 public:
  explicit FitRun(const FitRequest& request)
      : request_(request),
        config_(request.config),
        threads_(thread_count(config_.training.threads)),
        seed_(static_cast<uint64_t>(config_.training.seed)),
        data_(load_task(config_.task, threads_)) {
    check_task_of(data_.facts.shape);
    out_.classes = data_.facts.classes;
  }

  FitOutcome run() {
    for (const std::string& text : data_.messages) say(text);
    const FitData data = fit_data(data_, config_.task);
    out_.train = static_cast<int64_t>(data.source.count);
    announce(data);
    const double begin = now();
    choose(data);
    out_.fit_seconds = seconds_since(begin);
    Network network = make_network();
    score(network, data.joined > 0);
    out_.config = config_;
    out_.parameters = static_cast<int64_t>(network.layout().size);
    out_.seconds = seconds_since(started_);
    out_.peak_memory_mb = memory_.increase_mb();
    if (!request_.out.empty()) {
      write_fit(request_.out, network, data_, *model_, out_);
    }
    out_.seconds = seconds_since(started_);
    return out_;
  }

 private:
  void say(const std::string& text) const {
    if (request_.message) request_.message(text);
  }

  void announce(const FitData& data) const {
    say(fmt::format(
        "{}: {} series to fit{}, {} to test, {:.0f} steps on average, {} channels",
        config_.task.name, data.source.count,
        data.joined > 0 ? fmt::format(" ({} held out for validation among them)", data.joined) : "",
        data_.test.size(),
        static_cast<double>(total_steps(data.source)) / static_cast<double>(data.source.count),
        data.source.channels));
  }

  // Bands where there is time for them, samples where nothing forbids them.
  std::vector<Variant> variants(const FitData& data) const {
    const FrontendOptions given = config_.model.frontend;
    const double rate = data_.facts.preprocessing.rate();
    FrontendOptions bands = given;
    bands.kind = FrontendKind::rotations;
    bands = resolve_frontend(bands, rate);
    const double steps =
        static_cast<double>(total_steps(data.source)) / static_cast<double>(data.source.count);
    const double least = rate > 0 ? kBandHops * static_cast<double>(bands.hop) : kBandSteps;
    std::vector<Variant> out;
    if (request_.input == FitInput::samples || request_.input == FitInput::automatic) {
      out.push_back(samples_variant(data.source, config_.model.features));
    }
    if (request_.input == FitInput::bands ||
        (request_.input == FitInput::automatic && steps >= least)) {
      out.push_back(bands_variant(data.source, bands, seed_, threads_));
    }
    return out;
  }

  fit::FitOptions options(const Variant& v) const {
    fit::FitOptions o;
    o.states = static_cast<size_t>(config_.model.features.states);
    o.seed = seed_;
    o.threads = threads_;
    o.balance = request_.balance;
    o.bank = v.bank;
    return o;
  }

  // One fit for each variant, and the one that the estimate prefers; with much data, of some of it.
  void choose(FitData data) {
    std::vector<Variant> all = variants(data);
    if (request_.prefixes) {
      for (Variant& v : all) v.source = with_prefixes(v.source);
      data.targets = with_prefixes(data.targets, data.source.count);
      data.source = with_prefixes(data.source);
    }
    const bool part = all.size() > 1 && data.source.count > kCompareExamples &&
                      total_steps(data.source) > kCompareSteps;
    std::vector<size_t> numbers;
    if (part) {
      numbers = fit::random_order(data.source.count, kCompareExamples, seed_);
      std::sort(numbers.begin(), numbers.end());
    }
    double best = std::numeric_limits<double>::infinity();
    for (Variant& v : all) {
      const double begin = now();
      fit::Fitted model =
          part ? fit::fit(part_of(v.source, numbers), part_of(data.targets, numbers), options(v))
               : fit::fit(v.source, data.targets, options(v));
      out_.trials.push_back({v.name, model.estimate, seconds_since(begin)});
      const double loss = model.estimate.loss.value;
      if (variant_ && !(loss < best)) continue;
      best = loss;
      model_ = std::move(model);
      variant_ = std::move(v);
    }
    if (part) model_ = fit::fit(variant_->source, data.targets, options(*variant_));
    std::stable_partition(out_.trials.begin(), out_.trials.end(),
                          [&](const FitTrial& t) { return t.name == variant_->name; });
    for (const std::string& text : model_->messages) say(text);
    out_.estimate = model_->estimate;
    out_.penalty = model_->penalty;
    out_.temperature = model_->temperature;
  }

  Network make_network() {
    ModelOptions& m = config_.model;
    m.body = Body::features;
    m.features.states = static_cast<int64_t>(model_->bank.states());
    m.features.taps = static_cast<int64_t>(model_->bank.taps);
    m.features.differences = model_->bank.differences;
    m.frontend = variant_->frontend;
    Network network(m, data_.facts.shape, seed_);
    network.engine.threads = threads_;
    set_features(model_->bank, model_->weight, model_->bias, network.weights());
    if (m.frontend.used()) {
      const auto copy = [&](const char* name, const std::vector<float>& from) {
        std::copy(from.begin(), from.end(), network.weights().find(name).begin());
      };
      copy("frontend.mean", variant_->bands.mean);
      copy("frontend.deviation", variant_->bands.deviation);
    }
    return network;
  }

  void score(Network& network, bool joined) {
    const LossOptions loss = loss_options(config_.training, data_.facts.shape);
    Workspace workspace;
    if (!joined && data_.validation.size() > 0) {
      out_.validation = evaluate(network, workspace, loss, data_.validation);
    }
    if (data_.test.size() == 0) return;
    out_.test = evaluate(network, workspace, loss, data_.test);
    if (out_.test.classes) out_.majority = majority(data_.test, data_.facts.shape.outputs);
    early_answers();
  }

  void early_answers() {
    const DataShape& shape = data_.facts.shape;
    const fit::Source samples = examples_source(data_.test, shape);
    const fit::Targets targets = examples_targets(data_.test, shape);
    const fit::Source source = variant_->frontend.used()
                                   ? fit::band_source(samples, variant_->frontend, variant_->bands)
                                   : samples;
    for (const double share : kShares) {
      const std::vector<float> y = fit::predict(*model_, prefixes(source, share), threads_);
      EarlyAnswers early;
      early.share = share;
      if (targets.classification()) {
        const std::vector<double> scores(y.begin(), y.end());
        const fit::ScoredClasses s{scores, targets.classes, {}, {}};
        early.accuracy = fit::mean_of(fit::hits(s), {}, {});
        early.calibration = fit::calibration_error(s, 1);
      } else {
        for (size_t i = 0; i < y.size(); ++i) {
          early.mean_square += std::pow(static_cast<double>(y[i]) - targets.values[i], 2) /
                               static_cast<double>(y.size());
        }
      }
      out_.early.push_back(early);
    }
  }

  const FitRequest& request_;
  Config config_;
  double started_ = now();
  PeakMemory memory_;
  int threads_;
  uint64_t seed_;
  TaskData data_;
  std::optional<Variant> variant_;
  std::optional<fit::Fitted> model_;
  FitOutcome out_;
};

}  // namespace

FitOutcome fit_run(const FitRequest& request) {
  return FitRun(request).run();
}

}  // namespace rotrnn
