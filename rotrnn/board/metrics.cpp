#include "rotrnn/board/metrics.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "rotrnn/board/text.h"

namespace rotrnn::board {
namespace {

using Json = nlohmann::json;

// A file may come from anywhere: these bound what is kept of it.
constexpr int64_t kMostSteps = int64_t{1} << 53;  // steps are sent as doubles
constexpr size_t kMostLayers = 64, kMostClasses = 64, kMostName = 200;
constexpr size_t kMostEigenvalues = 2048;         // of a layer
constexpr size_t kMostLambdaNumbers = 2'000'000;  // of all frames
constexpr size_t kMostFrames = 240;

constexpr const char* kTrainFields[] = {"loss",   "global_lr", "recurrent_lr",      "gradient_norm",
                                        "tokens", "seconds",   "tokens_per_second", "memory_mb"};
constexpr const char* kScoreFields[] = {"loss", "accuracy", "mae", "mse", "seconds"};

std::optional<double> number(const Json& value) {
  if (!value.is_number()) return std::nullopt;
  const double number = value.get<double>();
  return std::isfinite(number) ? std::optional(number) : std::nullopt;
}

const Json* find(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found == object.end() ? nullptr : &*found;
}

std::optional<int64_t> step_of(const Json& line) {
  const Json* step = find(line, "step");
  if (!step || !step->is_number_integer()) return std::nullopt;
  if (step->is_number_unsigned() && step->get<uint64_t>() > static_cast<uint64_t>(kMostSteps)) {
    return std::nullopt;
  }
  const auto value = step->get<int64_t>();
  return value >= 0 ? std::optional(value) : std::nullopt;
}

std::optional<std::vector<float>> floats(const Json* values) {
  if (!values || !values->is_array() || values->size() > kMostEigenvalues) return std::nullopt;
  std::vector<float> out;
  for (const Json& value : *values) out.push_back(static_cast<float>(number(value).value_or(0)));
  return out;
}

std::optional<LambdaFrame> read_lambda(const Json& line, int64_t step) {
  const Json* layers = find(line, "layers");
  if (!layers || !layers->is_array() || layers->size() > kMostLayers) return std::nullopt;
  LambdaFrame frame;
  frame.step = step;
  for (const Json& layer : *layers) {
    std::vector<float> points;
    if (layer.is_object()) {
      const auto re = floats(find(layer, "re")), im = floats(find(layer, "im"));
      if (!re || !im || re->size() != im->size()) return std::nullopt;
      for (size_t i = 0; i < re->size(); ++i) {
        points.push_back((*re)[i]);
        points.push_back((*im)[i]);
      }
    }
    frame.layers.push_back(std::move(points));
  }
  return frame;
}

std::optional<Confusion> read_confusion(const Json& line, int64_t step) {
  const Json* rows = find(line, "confusion");
  if (!rows || !rows->is_array() || rows->empty() || rows->size() > kMostClasses) {
    return std::nullopt;
  }
  Confusion out;
  out.step = step;
  for (const Json& row : *rows) {
    if (!row.is_array() || row.size() != rows->size()) return std::nullopt;
    std::vector<int64_t> counts;
    for (const Json& count : row) {
      const double value = number(count).value_or(-1);
      if (value < 0 || value > static_cast<double>(kMostSteps)) return std::nullopt;
      counts.push_back(static_cast<int64_t>(value));
    }
    out.counts.push_back(std::move(counts));
  }
  const Json* names = find(line, "classes");
  if (names && names->is_array() && names->size() == out.counts.size()) {
    for (const Json& name : *names) {
      out.classes.push_back(name.is_string() ? clean_text(name.get<std::string>(), kMostName) : "");
    }
  }
  return out;
}

size_t numbers_of(const LambdaFrame& frame) {
  size_t count = 0;
  for (const auto& layer : frame.layers) count += layer.size();
  return count;
}

}  // namespace

void Metrics::rewind(int64_t step) {
  ++generation_;
  ++details_;
  for (auto& [name, series] : series_) series.rewind(static_cast<double>(step));
  while (!lambda_.empty() && lambda_.back().step >= step) {
    lambda_numbers_ -= numbers_of(lambda_.back());
    lambda_.pop_back();
  }
  std::erase_if(confusion_, [&](const auto& item) { return item.second.step >= step; });
}

// Every so many frames, so that those kept are spread over training; the newest one always.
void Metrics::keep(LambdaFrame frame) {
  ++details_;
  const bool same = !lambda_.empty() && lambda_.back().step >= frame.step;
  if (same || (lambda_.size() > 1 && lambda_seen_ % lambda_stride_ != 0)) {
    lambda_numbers_ -= numbers_of(lambda_.back());
    lambda_.pop_back();
  }
  ++lambda_seen_;
  lambda_numbers_ += numbers_of(frame);
  lambda_.push_back(std::move(frame));
  while (lambda_.size() > 2 &&
         (lambda_.size() > kMostFrames || lambda_numbers_ > kMostLambdaNumbers)) {
    std::deque<LambdaFrame> kept;
    for (size_t i = 0; i < lambda_.size(); ++i) {
      if (i % 2 == 0 || i + 1 == lambda_.size()) {
        kept.push_back(std::move(lambda_[i]));
      } else {
        lambda_numbers_ -= numbers_of(lambda_[i]);
      }
    }
    lambda_ = std::move(kept);
    lambda_stride_ *= 2;
  }
}

void Metrics::add_line(std::string_view text) {
  ++lines_;
  const Json line = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  const auto step = line.is_object() ? step_of(line) : std::nullopt;
  const Json* split = step ? find(line, "split") : nullptr;
  if (!split || !split->is_string()) {
    ++bad_lines_;
    return;
  }
  if (*step < last_step_) rewind(*step);
  last_step_ = *step;
  const auto& name = split->get_ref<const std::string&>();
  const auto add = [&](const std::string& key, const Json* value) {
    const auto found = value ? number(*value) : std::nullopt;
    if (found) series_[key].add(static_cast<double>(*step), *found);
  };
  if (name == "train") {
    for (const char* field : kTrainFields) add(name + "." + field, find(line, field));
  } else if (name == "validation" || name == "test") {
    for (const char* field : kScoreFields) add(name + "." + field, find(line, field));
    if (auto confusion = read_confusion(line, *step)) {
      confusion_[name] = std::move(*confusion);
      ++details_;
    }
  } else if (name == "norms") {
    for (const char* field : {"whole", "head"}) {
      const Json* values = find(line, field);
      if (!values || !values->is_array() || values->size() > kMostLayers) continue;
      for (size_t i = 0; i < values->size(); ++i) {
        add(name + "." + field + "." + std::to_string(i), &(*values)[i]);
      }
    }
  } else if (name == "lambda") {
    if (auto frame = read_lambda(line, *step)) keep(std::move(*frame));
  }
}

}  // namespace rotrnn::board
