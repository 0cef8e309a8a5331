#include "rotrnn/data/task.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>

#include "rotrnn/data/split.h"
#include "rotrnn/data/task_table.h"

namespace rotrnn {
namespace {

std::vector<int64_t> records_of(const std::vector<Part>& parts) {
  std::vector<int64_t> out;
  for (const Part& p : parts) {
    if (out.empty() || out.back() != p.record) out.push_back(p.record);
  }
  return out;
}

// The shape of what was read, by its preprocessing and targets.
DataShape shape_of(const TaskOptions& o, const Records& r, const Preprocessing& p) {
  DataShape shape;
  shape.input = p.tokens() ? InputKind::tokens : InputKind::channels;
  shape.inputs = p.tokens() ? std::ssize(p.vocabulary) : r.form.channels;
  shape.towers = r.form.towers;
  shape.rate = p.rate();
  shape.per_token = o.target == TaskTarget::token_label || o.target == TaskTarget::forecast;
  shape.target = o.target == TaskTarget::label || o.target == TaskTarget::token_label
                     ? TargetKind::classes
                     : TargetKind::values;
  switch (o.target) {
    case TaskTarget::value:
      shape.outputs = std::ssize(p.target_mean);
      break;
    case TaskTarget::forecast:
      shape.outputs = std::ssize(p.target_channels) * p.horizon;
      break;
    case TaskTarget::label:
    case TaskTarget::token_label:
      shape.outputs = std::ssize(r.classes);
      break;
  }
  return shape;
}

// Mean and standard deviation of the target values.
void learn_targets(const Records& r, const std::vector<int64_t>& train, Preprocessing& p) {
  const size_t width = r.examples[train.front()].values.size();
  p.target_mean.assign(width, 0);
  p.target_deviation.assign(width, 0);
  const auto n = static_cast<double>(train.size());
  for (size_t k = 0; k < width; ++k) {
    for (const int64_t i : train) p.target_mean[k] += r.examples[i].values[k] / n;
    double square = 0;
    for (const int64_t i : train) {
      square += std::pow(r.examples[i].values[k] - p.target_mean[k], 2) / n;
    }
    p.target_deviation[k] = square > 0 ? std::sqrt(square) : 1;
  }
}

void check_targets(const TaskOptions& o, const Records& r) {
  for (int64_t i = 0; i < r.size(); ++i) {
    const Record& e = r.examples[i];
    const bool given = o.target == TaskTarget::label         ? r.labels[i] >= 0
                       : o.target == TaskTarget::value       ? !e.values.empty()
                       : o.target == TaskTarget::token_label ? !e.token_classes.empty()
                                                             : true;
    if (!given) {
      throw std::invalid_argument(fmt::format(
          "{}: it has no targets for task.target = \"{}\"; task \"{}\" may not have any, or "
          "its columns are not named in [task]",
          e.name, name_of(o.target), o.name));
    }
    if (o.target == TaskTarget::value && e.values.size() != r.examples.front().values.size()) {
      throw std::invalid_argument(fmt::format("{}: {} target values, {} has {}", e.name,
                                              e.values.size(), r.examples.front().name,
                                              r.examples.front().values.size()));
    }
  }
}

// The records with their sequences cut to what is train of them: a long series may be train in its
// first part only, and what comes after it must not be learned from.
Records training_part(const Records& r, const std::vector<Part>& train) {
  Records out = r;
  const int64_t step = element_size(r.form.element) * r.form.channels;
  for (const Part& p : train) {
    if (p.steps >= 0) out.sequences.extents()[p.record].size = (p.begin + p.steps) * step;
  }
  return out;
}

Preprocessing learn(const Task& task, const TaskOptions& o, const Records& r,
                    const SplitParts& parts) {
  const auto train = records_of(parts.train);
  Preprocessing p = o.target == TaskTarget::forecast
                        ? task.prepare(o, training_part(r, parts.train), train)
                        : task.prepare(o, r, train);
  p.keep_every = p.tokens() ? 1 : o.keep_every;
  if (o.target == TaskTarget::value) learn_targets(r, train, p);
  if (o.target == TaskTarget::forecast) {
    if (p.tokens()) {
      throw std::invalid_argument("task.target: \"forecast\" is for series of numbers, not text");
    }
    p.horizon = o.horizon;
    p.target_channels.resize(static_cast<size_t>(r.form.channels));
    std::iota(p.target_channels.begin(), p.target_channels.end(), 0);
  }
  return p;
}

// The model's preprocessing for records that may be stored in another form.
Preprocessing fitted(const TaskFacts& facts, const RecordForm& form, const std::string& where) {
  Preprocessing p = facts.preprocessing;
  if (p.form.channels != form.channels || p.form.towers != form.towers ||
      (p.tokens() && p.form.element != form.element)) {
    throw std::runtime_error(
        fmt::format("{}: {} channels in {} sequence(s), the model was trained on {} in {}", where,
                    form.channels, form.towers, p.form.channels, p.form.towers));
  }
  if (form.rate != p.form.rate && form.rate != 0 && p.form.rate != 0) {
    throw std::runtime_error(
        fmt::format("{}: {} samples per second, the model was trained on {}; resample it", where,
                    form.rate, p.form.rate));
  }
  if (form.names != p.form.names) {
    throw std::runtime_error(fmt::format(
        "{}: its channels are {}, the model was trained on {}; put them into this order, or name "
        "them so",
        where, fmt::join(form.names, ", "), fmt::join(p.form.names, ", ")));
  }
  p.form = form;
  return p;
}

// Class numbers of the data as those of the model, by name.
void renumber(Records& r, const std::vector<std::string>& classes) {
  if (r.classes == classes || classes.empty()) return;
  std::vector<int64_t> place;
  for (const std::string& name : r.classes) {
    const auto found = std::find(classes.begin(), classes.end(), name);
    if (found == classes.end()) {
      throw std::runtime_error(
          fmt::format("the data have a class \"{}\" that the model does not know; it was trained "
                      "on {}",
                      name, fmt::join(classes, ", ")));
    }
    place.push_back(found - classes.begin());
  }
  for (int64_t& label : r.labels) label = label < 0 ? label : place[label];
  for (Record& e : r.examples) {
    for (int32_t& c : e.token_classes) c = static_cast<int32_t>(place[c]);
  }
  r.classes = classes;
}

void tell_skipped(const Records& r, std::vector<std::string>& messages) {
  if (r.warnings.empty()) return;
  std::string text = fmt::format("{} example(s) were skipped:", r.skipped);
  if (r.skipped == 0) text = "warning:";
  for (const std::string& w : r.warnings) text += "\n  " + w;
  if (r.skipped > std::ssize(r.warnings)) text += "\n  …";
  messages.push_back(text);
}

}  // namespace

void check_task(const TaskOptions& options) {
  const Task& task = find_task(options.name);
  if (options.name == "listops" && options.path.empty()) validate(options.listops);
  if (!task.own && options.target != TaskTarget::label) {
    throw std::invalid_argument(
        fmt::format("task.target: task \"{}\" predicts classes; \"{}\" is for data of your own",
                    task.name, name_of(options.target)));
  }
  if (options.max_tokens == 1) {
    throw std::invalid_argument("task.max_tokens is 1; it must be 0 or at least 2");
  }
  if (options.target == TaskTarget::forecast && options.max_tokens > 0) {
    throw std::invalid_argument(
        "task.max_tokens: the examples of a forecast are cut by task.window; leave it out");
  }
  if (options.target == TaskTarget::forecast && options.normalisation == Scaling::upstream) {
    throw std::invalid_argument(
        "task.normalisation: \"upstream\" has a mean for every step, which a forecast cannot use; "
        "choose standard or none");
  }
}

TaskFacts describe_task(const TaskOptions& options, int threads) {
  const Task& task = find_task(options.name);
  return task.facts ? task.facts(options) : load_task(options, threads).facts;
}

TaskData load_task(const TaskOptions& options, int threads, const TaskFacts* trained) {
  const Task& task = find_task(options.name);
  auto records = std::make_shared<Records>(read_task(options, threads));
  check_targets(options, *records);
  TaskData data;
  tell_skipped(*records, data.messages);
  const SplitParts parts = split_records(*records, options, data.messages);
  auto preprocessing =
      std::make_shared<Preprocessing>(trained ? fitted(*trained, records->form, options.path)
                                              : learn(task, options, *records, parts));
  if (trained) {
    const auto targets = records->examples.front().values.size();
    if (options.target == TaskTarget::value && targets != preprocessing->target_mean.size()) {
      throw std::runtime_error(fmt::format("{}: {} target values, the model was trained on {}",
                                           records->examples.front().name, targets,
                                           preprocessing->target_mean.size()));
    }
    data.facts = *trained;
    renumber(*records, trained->classes);
  } else {
    data.facts.shape = shape_of(options, *records, *preprocessing);
    data.facts.classes = records->classes;
    data.facts.preprocessing = *preprocessing;
  }
  data.train = Examples(records, preprocessing, parts.train);
  data.validation = Examples(records, preprocessing, parts.validation);
  data.test = Examples(records, preprocessing, parts.test);
  data.facts.typical_length = data.train.total_length() / data.train.size();
  return data;
}

InputReader::InputReader(const TaskOptions& options, const TaskFacts& facts)
    : options_(options), facts_(facts) {}

bool InputReader::takes_lines() const {
  return find_task(options_.name).read_line &&
         facts_.preprocessing.kind != Preprocessing::Kind::values;
}

bool InputReader::files_are_lines() const {
  return find_task(options_.name).lines_of_files;
}

Examples InputReader::to_examples(Records records) const {
  auto kept = std::make_shared<Records>(std::move(records));
  auto preprocessing = std::make_shared<Preprocessing>(
      fitted(facts_, kept->form, kept->size() ? kept->examples.front().name : "input"));
  std::vector<Part> parts;
  for (int64_t i = 0; i < kept->size(); ++i) parts.push_back({i, 0, -1});
  return {std::move(kept), std::move(preprocessing), std::move(parts)};
}

Examples InputReader::lines(const std::vector<std::string>& lines) const {
  const Task& task = find_task(options_.name);
  if (!takes_lines()) {
    throw std::invalid_argument(
        fmt::format("task \"{}\" does not take text as its input; name files", options_.name));
  }
  RecordWriter out;
  for (size_t i = 0; i < lines.size(); ++i) {
    Record record;
    record.name = std::to_string(i);
    task.read_line(std::move(record), lines[i], out);
  }
  return to_examples(out.finish());
}

Examples InputReader::file(const std::filesystem::path& file, int threads) const {
  const Task& task = find_task(options_.name);
  if (!std::filesystem::exists(file)) {
    throw std::runtime_error(fmt::format("{}: there is no such file", file.string()));
  }
  RecordWriter out(options_.memory_mb, cache_folder(options_));
  task.read({options_, file, Split::any, false, threads}, out);
  Records records = out.finish(task.order);
  if (records.size() == 0) {
    throw std::runtime_error(
        fmt::format("{}: it has no input of task \"{}\"", file.string(), options_.name));
  }
  return to_examples(std::move(records));
}

SampleInput sample_input(const TaskOptions& options) {
  const Task& task = find_task(options.name);
  return task.sample ? task.sample(options) : SampleInput{};
}

Majority majority(const Examples& examples, int64_t classes) {
  std::vector<int64_t> counts(classes);
  int64_t total = 0;
  std::vector<int64_t> labels;
  for (int64_t i = 0; i < examples.size(); ++i) {
    if (examples.record(i).token_classes.empty()) {
      labels.assign(1, examples.label(i));
    } else {
      labels.resize(static_cast<size_t>(examples.length(i)));
      examples.write_token_labels(i, labels.data());
    }
    for (const int64_t label : labels) ++counts.at(label);
    total += std::ssize(labels);
  }
  const auto best = std::max_element(counts.begin(), counts.end());
  return {best - counts.begin(),
          static_cast<double>(*best) / static_cast<double>(std::max<int64_t>(total, 1))};
}

}  // namespace rotrnn
