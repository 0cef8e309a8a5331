#include "rotrnn/fit/c_api.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <numeric>
#include <stdexcept>
#include <string>

#include "rotrnn/base/threads.h"
#include "rotrnn/fit/fit.h"
#include "rotrnn/fit/model.h"
#include "rotrnn/io/atomic_file.h"
#include "rotrnn/runtime/c_status.h"
#include "rotrnn/runtime/packed_model.h"

namespace rotrnn::fit {
namespace {

/// What the caller knows of a struct, the rest 0.
template <class T>
T known(const T& from, const char* what) {
  T out{};
  if (from.size < static_cast<int64_t>(sizeof from.size)) {
    throw std::invalid_argument(std::string(what) + ".size is " + std::to_string(from.size) +
                                "; set it to sizeof the struct");
  }
  std::memcpy(&out, &from, std::min(sizeof out, static_cast<size_t>(from.size)));
  return out;
}

void need(bool there, const char* what) {
  if (!there) throw std::invalid_argument(what);
}

void check(const rotrnn_fit_data& d) {
  need(d.count > 0 && d.channels > 0 && d.outputs > 0,
       "count, channels and outputs must be at least 1");
  need(d.values != nullptr && d.offsets != nullptr, "values or offsets is null");
  need((d.labels != nullptr) != (d.targets != nullptr),
       "give labels, for classes, or targets, for values");
  need(d.offsets[0] == 0, "offsets must begin with 0");
  for (int64_t i = 0; i < d.count; ++i) {
    if (d.offsets[i + 1] > d.offsets[i]) continue;
    throw std::invalid_argument("series " + std::to_string(i) + " has no steps");
  }
}

/// Channels and targets to mean 0 and deviation 1.
void standardise(const double* from, size_t rows, size_t width, std::vector<double>& mean,
                 std::vector<double>& deviation) {
  mean.assign(width, 0);
  deviation.assign(width, 0);
  const auto n = static_cast<double>(rows);
  for (size_t i = 0; i < rows * width; ++i) mean[i % width] += from[i] / n;
  for (size_t i = 0; i < rows * width; ++i) {
    deviation[i % width] += std::pow(from[i] - mean[i % width], 2) / n;
  }
  for (double& d : deviation) d = d > 0 ? std::sqrt(d) : 1;
}

struct Problem {
  std::vector<float> values;
  Targets targets;
  ModelFacts facts;
};

Problem read(const rotrnn_fit_data& d) {
  Problem p;
  const auto count = static_cast<size_t>(d.count), C = static_cast<size_t>(d.channels);
  const auto outputs = static_cast<size_t>(d.outputs);
  const size_t rows = static_cast<size_t>(d.offsets[count]);
  Preprocessing& pre = p.facts.preprocessing;
  pre.kind = Preprocessing::Kind::values;
  pre.form.element = Element::f32;
  pre.form.channels = d.channels;
  pre.form.rate = d.rate;
  const std::vector<double> wide(d.values, d.values + rows * C);
  standardise(wide.data(), rows, C, pre.mean, pre.deviation);
  for (size_t i = 0; i < wide.size(); ++i) {
    p.values.push_back(static_cast<float>((wide[i] - pre.mean[i % C]) / pre.deviation[i % C]));
  }
  p.facts.shape = {InputKind::channels, d.channels,
                   d.labels != nullptr ? TargetKind::classes : TargetKind::values, d.outputs};
  p.targets.outputs = outputs;
  if (d.labels != nullptr) {
    p.targets.classes.assign(d.labels, d.labels + count);
    for (size_t k = 0; k < outputs; ++k) {
      p.facts.classes.push_back(d.class_names != nullptr ? d.class_names[k] : std::to_string(k));
    }
  } else {
    standardise(d.targets, count, outputs, pre.target_mean, pre.target_deviation);
    for (size_t i = 0; i < count * outputs; ++i) {
      p.targets.values.push_back((d.targets[i] - pre.target_mean[i % outputs]) /
                                 pre.target_deviation[i % outputs]);
    }
  }
  if (d.groups != nullptr) p.targets.groups.assign(d.groups, d.groups + count);
  if (d.weights != nullptr) p.targets.weights.assign(d.weights, d.weights + count);
  return p;
}

void write_report(const Fitted& model, rotrnn_fit_report* out) {
  rotrnn_fit_report r{};
  r.size = out->size;
  r.accuracy = model.estimate.accuracy.value;
  r.accuracy_error = model.estimate.accuracy.error;
  r.loss = model.estimate.loss.value;
  r.penalty = model.penalty;
  r.temperature = model.temperature;
  const auto room = static_cast<size_t>(std::max<int64_t>(out->size, 0));
  std::memcpy(out, &r, std::min(sizeof r, room));
}

}  // namespace
}  // namespace rotrnn::fit

rotrnn_status rotrnn_fit(const rotrnn_fit_data* data, const rotrnn_fit_options* options,
                         rotrnn_model** model, rotrnn_fit_report* report) {
  using namespace rotrnn;
  if (data == nullptr) return runtime::missing("data is null");
  if (model == nullptr) return runtime::missing("model is null; it is where the handle goes");
  return runtime::guarded([&] {
    const rotrnn_fit_data d = fit::known(*data, "data");
    const rotrnn_fit_options o =
        options != nullptr ? fit::known(*options, "options") : rotrnn_fit_options{};
    fit::check(d);
    const fit::Problem p = fit::read(d);
    fit::FitOptions wish;
    if (o.states > 0) wish.states = static_cast<size_t>(o.states);
    wish.seed = o.seed;
    wish.threads = o.threads > 0 ? o.threads : kernels::available_threads();
    wish.balance = o.unbalanced == 0;
    const std::span<const int64_t> offsets(d.offsets, static_cast<size_t>(d.count) + 1);
    const fit::Fitted fitted = fit::fit(
        fit::packed_source(p.values, offsets, static_cast<size_t>(d.channels)), p.targets, wish);
    const std::string bytes = model_bytes(fit::model_file(fitted, p.facts), "the fitted model");
    *model = new rotrnn_model{runtime::Model::from_bytes(bytes, "the fitted model")};
    if (report != nullptr) fit::write_report(fitted, report);
  });
}

rotrnn_status rotrnn_model_save(const rotrnn_model* model, const char* file) {
  using namespace rotrnn;
  if (model == nullptr) return runtime::missing("the model is null");
  if (file == nullptr) return runtime::missing("file is null; it is the path to write");
  return runtime::guarded(ROTRNN_BAD_ARGUMENT, ROTRNN_BAD_FILE, [&] {
    write_file_atomically(file, model_bytes(model->model->packed().file, file));
  });
}
