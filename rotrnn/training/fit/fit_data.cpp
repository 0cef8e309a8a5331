#include "rotrnn/training/fit/fit_data.h"

#include <map>
#include <stdexcept>
#include <string>

namespace rotrnn {
namespace {

// Whether the validation examples were taken from train, by a share of it.
bool held_out_of_train(const TaskData& data, const TaskOptions& o) {
  if (o.validation_from == ValidationFrom::test || !o.validation_path.empty() ||
      !o.validation_pattern.empty() || data.validation.size() == 0) {
    return false;
  }
  return data.validation.record(0).split != Split::validation;
}

fit::Source joined(fit::Source a, fit::Source b) {
  fit::Source out;
  out.count = a.count + b.count;
  out.channels = a.channels;
  out.length = [a, b](size_t i) { return i < a.count ? a.length(i) : b.length(i - a.count); };
  out.read = [a, b](size_t i, float* to) { i < a.count ? a.read(i, to) : b.read(i - a.count, to); };
  return out;
}

void append(fit::Targets& to, const fit::Targets& from) {
  to.classes.insert(to.classes.end(), from.classes.begin(), from.classes.end());
  to.values.insert(to.values.end(), from.values.begin(), from.values.end());
}

}  // namespace

fit::Source examples_source(const Examples& examples, const DataShape& shape) {
  fit::Source out;
  out.count = static_cast<size_t>(examples.size());
  out.channels = static_cast<size_t>(shape.inputs);
  out.length = [&examples](size_t i) {
    return static_cast<size_t>(examples.length(static_cast<int64_t>(i)));
  };
  out.read = [&examples](size_t i, float* to) {
    examples.write_values(static_cast<int64_t>(i), to);
  };
  return out;
}

fit::Targets examples_targets(const Examples& examples, const DataShape& shape) {
  fit::Targets out;
  out.outputs = static_cast<size_t>(shape.outputs);
  std::vector<float> row(out.outputs);
  for (int64_t i = 0; i < examples.size(); ++i) {
    if (shape.target == TargetKind::classes) {
      out.classes.push_back(examples.label(i));
    } else {
      examples.write_targets(i, row.data());
      out.values.insert(out.values.end(), row.begin(), row.end());
    }
  }
  return out;
}

FitData fit_data(const TaskData& data, const TaskOptions& options) {
  const DataShape& shape = data.facts.shape;
  FitData out;
  std::vector<const Examples*> parts{&data.train};
  out.source = examples_source(data.train, shape);
  out.targets = examples_targets(data.train, shape);
  if (held_out_of_train(data, options)) {
    out.source = joined(out.source, examples_source(data.validation, shape));
    append(out.targets, examples_targets(data.validation, shape));
    out.joined = data.validation.size();
    parts.push_back(&data.validation);
  }
  // Groups by name; an example without one is alone.
  std::map<std::string, int64_t> groups;
  bool grouped = false;
  int64_t alone = 0;
  for (const Examples* examples : parts) {
    for (int64_t i = 0; i < examples->size(); ++i) {
      const std::string& name = examples->record(i).group;
      grouped = grouped || !name.empty();
      const std::string key = name.empty() ? std::string(1, '\0') + std::to_string(alone++) : name;
      out.targets.groups.push_back(
          groups.try_emplace(key, static_cast<int64_t>(groups.size())).first->second);
    }
  }
  if (!grouped) out.targets.groups.clear();
  return out;
}

}  // namespace rotrnn
