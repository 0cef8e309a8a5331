#include "rotrnn/data/task.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <stdexcept>

#include "rotrnn/data/listops_tsv.h"
#include "rotrnn/data/mnist.h"

namespace rotrnn {
namespace {

std::vector<std::string> numbered(int64_t count) {
  std::vector<std::string> names;
  for (int64_t i = 0; i < count; ++i) names.push_back(std::to_string(i));
  return names;
}

std::vector<int32_t> with_end(std::span<const uint8_t> expression, int64_t max_tokens) {
  const auto kept = std::min<int64_t>(std::ssize(expression), max_tokens - 1);
  std::vector<int32_t> tokens(expression.begin(), expression.begin() + kept);
  tokens.push_back(listops_token::eos);
  return tokens;
}

// At most `limit` of them; 0: all.
Examples to_examples(const ListOpsExamples& listops, int64_t limit, int64_t max_tokens) {
  Examples out;
  const int64_t count = limit > 0 ? std::min(limit, listops.size()) : listops.size();
  for (int64_t i = 0; i < count; ++i) {
    const auto tokens = with_end(listops.expression(i), max_tokens);
    out.tokens.insert(out.tokens.end(), tokens.begin(), tokens.end());
    out.offsets.push_back(static_cast<int64_t>(out.tokens.size()));
    out.labels.push_back(listops.labels[i]);
  }
  return out;
}

TaskFacts listops_facts(const TaskOptions& options) {
  TaskFacts facts;
  facts.shape = {InputKind::tokens, listops_token::count, TargetKind::classes, 10};
  // What the generator gives on average in the Long Range Arena's setting is 1,050 of 2,000.
  facts.typical_length = std::min(options.max_tokens, (options.listops.max_length * 21) / 40);
  facts.vocabulary = listops_vocabulary();
  facts.classes = numbered(10);
  return facts;
}

ListOpsSplits make_listops(const TaskOptions& options, int threads) {
  ListOpsCounts counts;  // the Long Range Arena's, where the options give none
  const auto set = [](int64_t& count, int64_t given) { count = given > 0 ? given : count; };
  set(counts.train, options.counts.train);
  set(counts.validation, options.counts.validation);
  set(counts.test, options.counts.test);
  return generate_listops(options.listops, static_cast<uint64_t>(options.seed), counts, threads);
}

TaskData load_listops(const TaskOptions& options, int threads) {
  const ListOpsSplits splits =
      options.path.empty() ? make_listops(options, threads) : read_listops_folder(options.path);
  const SplitCounts& limit = options.counts;
  return {listops_facts(options), to_examples(splits.train, limit.train, options.max_tokens),
          to_examples(splits.validation, limit.validation, options.max_tokens),
          to_examples(splits.test, limit.test, options.max_tokens)};
}

std::string listops_sample(const TaskOptions&) {
  return "[MAX 2 9 [MIN 4 7 ] 0 ]";
}

std::string mnist_sample(const TaskOptions& options) {
  const auto plain = std::filesystem::path(options.path) / kMnistTest.images;
  return std::filesystem::exists(plain) ? plain.string() : plain.string() + ".gz";
}

TaskFacts speech_commands_facts(const TaskOptions&) {
  TaskFacts facts;
  facts.shape = {InputKind::channels, 1, TargetKind::classes, 35};
  facts.typical_length = 16000;
  facts.classes = numbered(35);
  return facts;
}

TaskFacts text_facts(const TaskOptions& options) {
  TaskFacts facts;
  // Characters of the reviews that occur 15 times or more, with padding, unknown and end.
  facts.shape = {InputKind::tokens, 135, TargetKind::classes, 2};
  facts.typical_length = std::min<int64_t>(options.max_tokens, 1325);
  facts.classes = {"neg", "pos"};
  return facts;
}

// One line a task. A task without `load` can be described and measured, not trained on; one without
// `read_inputs` predicts for lines of text.
struct Task {
  const char* name;
  TaskFacts (*facts)(const TaskOptions&);
  TaskData (*load)(const TaskOptions&, int threads);
  std::string (*sample)(const TaskOptions&);
  Examples (*read_inputs)(const TaskOptions&, const std::filesystem::path&);
};
constexpr Task kTasks[] = {
    {"listops", listops_facts, load_listops, listops_sample, nullptr},
    {"mnist", mnist_facts, load_mnist, mnist_sample, read_mnist_images},
    {"speech_commands", speech_commands_facts, nullptr, nullptr, nullptr},
    {"text", text_facts, nullptr, nullptr, nullptr},
};

const Task& find_task(const std::string& name) {
  for (const Task& task : kTasks) {
    if (name == task.name) return task;
  }
  std::vector<std::string> names;
  for (const Task& task : kTasks) names.emplace_back(task.name);
  throw std::invalid_argument(
      fmt::format("task.name: unknown task \"{}\"; there are {}", name, fmt::join(names, ", ")));
}

}  // namespace

TaskFacts describe_task(const TaskOptions& options) {
  return find_task(options.name).facts(options);
}

TaskData load_task(const TaskOptions& options, int threads) {
  const Task& task = find_task(options.name);
  if (!task.load) {
    std::vector<std::string> names;
    for (const Task& t : kTasks) {
      if (t.load) names.push_back(fmt::format("\"{}\"", t.name));
    }
    throw std::invalid_argument(
        fmt::format("task.name: this version can describe \"{}\" but has no reader for its data; "
                    "train on {}",
                    options.name, fmt::join(names, " or ")));
  }
  TaskData data = task.load(options, threads);
  for (const Examples* split : {&data.train, &data.validation, &data.test}) {
    if (split->size() == 0) {
      throw std::invalid_argument(
          "task: train, validation and test need at least one example each; see task.train, "
          "task.validation and task.test");
    }
  }
  return data;
}

std::vector<int32_t> encode_text(const TaskOptions& options, std::string_view text) {
  if (options.name != "listops") {
    throw std::invalid_argument(
        fmt::format("task \"{}\" does not take text as its input", options.name));
  }
  const auto tokens = tokenize_listops(text, UnknownWords::reject);
  if (tokens.empty()) throw std::invalid_argument("empty expression; write one such as [MAX 3 7 ]");
  return with_end(tokens, options.max_tokens);
}

bool reads_files(const TaskOptions& options) {
  return find_task(options.name).read_inputs != nullptr;
}

Examples read_inputs(const TaskOptions& options, const std::filesystem::path& file) {
  const Task& task = find_task(options.name);
  if (!task.read_inputs) {
    throw std::invalid_argument(
        fmt::format("task \"{}\" takes lines of text as its input", options.name));
  }
  return task.read_inputs(options, file);
}

std::string sample_input(const TaskOptions& options) {
  const Task& task = find_task(options.name);
  return task.sample ? task.sample(options) : "";
}

Majority majority(const Examples& examples, int64_t classes) {
  std::vector<int64_t> counts(classes);
  for (int64_t label : examples.labels) ++counts.at(label);
  const auto best = std::max_element(counts.begin(), counts.end());
  const double size = static_cast<double>(std::max<int64_t>(examples.size(), 1));
  return {best - counts.begin(), static_cast<double>(*best) / size};
}

}  // namespace rotrnn
