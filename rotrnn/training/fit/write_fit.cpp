#include "rotrnn/training/fit/write_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>
#include <numeric>

#include "rotrnn/io/atomic_file.h"
#include "rotrnn/io/folder_lock.h"
#include "rotrnn/plot/scatter.h"
#include "rotrnn/training/checkpoint/network_checkpoint.h"
#include "rotrnn/training/checkpoint/run_folder.h"
#include "rotrnn/training/evaluate/observe_scores.h"
#include "rotrnn/training/metrics.h"
#include "rotrnn/training/run_data.h"

namespace rotrnn {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kStrongest = 200;  // rotations in the picture

// Steps per second of what the bank reads; 0: not known.
double bank_rate(const Network& network, const TaskData& data) {
  const double rate = data.facts.preprocessing.rate();
  const FrontendOptions& frontend = network.options().frontend;
  return frontend.used() ? rate / static_cast<double>(frontend.hop) : rate;
}

std::string rotations_picture(const Network& network, const TaskData& data,
                              const fit::Fitted& model) {
  const double rate = bank_rate(network, data);
  const double hop =
      network.options().frontend.used() ? static_cast<double>(network.options().frontend.hop) : 1;
  std::vector<size_t> order(model.importance.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return model.importance[a] > model.importance[b]; });
  order.resize(std::min(order.size(), kStrongest));
  Scatter s;
  s.title = fmt::format("the {} strongest rotations", order.size());
  s.x_label = rate > 0 ? "frequency (Hz); not turning: at the left" : "steps per turn";
  s.y_label = rate > 0 ? "memory (s)" : "memory (steps)";
  for (const size_t i : order) {
    const double theta = static_cast<double>(model.bank.theta[i]);
    const double steps = std::exp(-static_cast<double>(model.bank.gamma_log[i]));
    const double turns = theta / (2 * std::numbers::pi);
    s.points.push_back({rate > 0    ? turns * rate
                        : theta > 0 ? hop / turns
                                    : 0,
                        rate > 0 ? steps / rate : steps * hop, model.importance[i]});
  }
  return to_svg(s);
}

Json score_line(const char* split, const Scores& scores, const std::vector<std::string>& classes,
                double seconds) {
  Json line{{"step", 1}, {"split", split}, {"loss", scores.loss}};
  if (scores.classes) {
    line["accuracy"] = scores.accuracy;
  } else {
    line["mae"] = scores.mae;
    line["mse"] = scores.mse;
    line["naive_mae"] = scores.naive_mae;
    line["naive_mse"] = scores.naive_mse;
  }
  line["examples"] = scores.examples;
  add_confusion(line, scores, classes);
  line["seconds"] = seconds;
  return line;
}

Json estimate_line(const FitOutcome& o) {
  const fit::Estimate& e = o.estimate;
  Json line{{"step", 1},
            {"split", "estimate"},
            {"by", fit::estimate_name(e.kind)},
            {"loss", e.loss.value},
            {"loss_error", e.loss.error}};
  if (!e.confusion.empty()) {
    line["accuracy"] = e.accuracy.value;
    line["accuracy_error"] = e.accuracy.error;
    line["calibration"] = e.calibration;
    Scores scores;
    scores.confusion = e.confusion;
    add_confusion(line, scores, o.classes);
  }
  line["examples"] = e.examples;
  line["penalty"] = o.penalty;
  line["temperature"] = o.temperature;
  line["seconds"] = o.fit_seconds;
  return line;
}

Json early_line(const FitOutcome& o) {
  Json rows = Json::array();
  for (const EarlyAnswers& e : o.early) {
    Json row{{"share", e.share}};
    if (o.test.classes) {
      row["accuracy"] = e.accuracy.value;
      row["accuracy_error"] = e.accuracy.error;
      row["calibration"] = e.calibration;
    } else {
      row["mean_square"] = e.mean_square;
    }
    rows.push_back(row);
  }
  return {{"step", 1}, {"split", "early"}, {"shares", rows}};
}

}  // namespace

void write_fit(const std::filesystem::path& out, const Network& network, const TaskData& data,
               const fit::Fitted& model, const FitOutcome& o) {
  std::filesystem::create_directories(out);
  const FolderLock lock(out);
  clear_run(out);
  write_file_atomically(out / "config.toml", to_toml(o.config));
  write_file_atomically(out / "splits.tsv", splits_text(data));
  write_file_atomically(out / "rotations.svg", rotations_picture(network, data, model));
  TrainState state;
  state.step = state.best_step = 1;
  state.best_score = o.validation.examples > 0 ? o.validation.score()
                     : o.test.classes          ? o.estimate.accuracy.value
                                               : -o.estimate.loss.value;
  save_checkpoint(out / kBest, network.weights(), nullptr, {o.config, data.facts, state, ""});
  MetricsLog metrics(out / "metrics.jsonl", -1);
  metrics.write(estimate_line(o));
  if (o.validation.examples > 0) {
    metrics.write(score_line("validation", o.validation, o.classes, o.seconds));
  }
  if (o.test.examples > 0) metrics.write(score_line("test", o.test, o.classes, o.seconds));
  if (!o.early.empty()) metrics.write(early_line(o));
  metrics.sync();
}

}  // namespace rotrnn
