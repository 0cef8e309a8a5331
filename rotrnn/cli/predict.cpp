#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <stdexcept>

#include "rotrnn/cli/checkpoint_option.h"
#include "rotrnn/cli/command.h"
#include "rotrnn/cli/output/json_line.h"
#include "rotrnn/cli/output/text.h"
#include "rotrnn/io/lines.h"
#include "rotrnn/training/evaluate/predictor.h"

namespace rotrnn::cli {
namespace {

struct PredictOptions {
  std::string run;
  CheckpointOption checkpoint;
  std::vector<std::string> files;
  EngineOptions engine;
  bool json = false;
};

// Lines of one batch: what is read from a pipe is answered in parts of this size.
constexpr size_t kLines = 64;
constexpr int64_t kTokens = 32768;  // of a batch from a file

struct Line {
  std::string text;
  int64_t number;
};

// What is predicted, as JSON and for people.
nlohmann::ordered_json to_json(const TaskFacts& facts, const Prediction& p) {
  const auto& classes = facts.classes;
  if (!p.labels.empty()) {
    nlohmann::ordered_json labels = nlohmann::ordered_json::array();
    for (const int64_t label : p.labels) labels.push_back(classes.at(label));
    return {{"labels", labels}};
  }
  if (!p.values.empty()) return {{"values", p.values}};
  nlohmann::ordered_json probabilities;
  for (size_t i = 0; i < classes.size(); ++i) probabilities[classes[i]] = p.probabilities[i];
  return {{"label", classes.at(p.label)}, {"probabilities", probabilities}};
}

std::string to_text(const TaskFacts& facts, const Prediction& p) {
  const auto& classes = facts.classes;
  std::vector<std::string> parts;
  if (!p.labels.empty()) {
    for (const int64_t label : p.labels) parts.push_back(classes.at(label));
    return fmt::format("{}", fmt::join(parts, " "));
  }
  if (!p.values.empty()) {
    for (const double value : p.values) parts.push_back(fmt::format("{:.6g}", value));
    return fmt::format("{}", fmt::join(parts, " "));
  }
  for (size_t i = 0; i < classes.size(); ++i) {
    parts.push_back(fmt::format("{}:{:.3f}", classes[i], p.probabilities[i]));
  }
  return fmt::format("{}\t{}", classes.at(p.label), fmt::join(parts, " "));
}

// The JSON line says where the input came from.
void print_prediction(const PredictOptions& o, const TaskFacts& facts, nlohmann::ordered_json where,
                      const Prediction& p, const std::string& name) {
  if (o.json) {
    where.update(to_json(facts, p));
    print_json_line(where);
  } else {
    fmt::print("{}{}\n", name.empty() ? "" : name + "\t", to_text(facts, p));
  }
}

void answer(const PredictOptions& o, const std::string& file, const std::vector<Line>& lines,
            Predictor& predictor, const InputReader& reader) {
  if (lines.empty()) return;
  std::vector<std::string> texts;
  for (const Line& line : lines) texts.push_back(line.text);
  std::vector<int64_t> numbers(lines.size());
  std::iota(numbers.begin(), numbers.end(), 0);
  const auto predictions = predictor.predict(reader.lines(texts), numbers);
  for (size_t i = 0; i < lines.size(); ++i) {
    print_prediction(o, predictor.header().facts, {{"file", file}, {"line", lines[i].number}},
                     predictions[i], "");
  }
  std::fflush(stdout);
}

// A file that holds one input, or many.
void predict_file(const PredictOptions& o, const std::string& file, Predictor& predictor,
                  const InputReader& reader) {
  const Examples inputs = reader.file(file, o.engine.threads > 0 ? o.engine.threads : 1);
  for (int64_t begin = 0; begin < inputs.size();) {
    std::vector<int64_t> numbers;
    for (int64_t tokens = 0; begin < inputs.size() && numbers.size() < kLines; ++begin) {
      tokens += inputs.length(begin);
      if (!numbers.empty() && tokens > kTokens) break;
      numbers.push_back(begin);
    }
    const auto predictions = predictor.predict(inputs, numbers);
    for (size_t i = 0; i < numbers.size(); ++i) {
      const std::string& name = inputs.record(numbers[i]).name;
      print_prediction(o, predictor.header().facts,
                       {{"file", file}, {"index", numbers[i]}, {"name", name}}, predictions[i],
                       name);
    }
  }
}

// A line that cannot be read stops everything with its place, after the answers before it.
void predict_lines(const PredictOptions& o, const ReadBytes& read, const std::string& file,
                   Predictor& predictor, const InputReader& reader) {
  std::vector<Line> lines;
  LineReader in(read, file);
  bool table = false;
  for (std::string_view line; in.next(line);) {
    const int64_t number = in.place().line;
    if (number == 1 && line == "Source\tTarget") {  // the public ListOps files
      table = true;
      continue;
    }
    const std::string text(table ? line.substr(0, line.find('\t')) : line);
    if (text.find_first_not_of(" \t") == std::string::npos) continue;
    try {
      reader.lines({text});
    } catch (const std::exception& error) {
      answer(o, file, lines, predictor, reader);
      throw std::runtime_error(fmt::format("{}:{}: {}", file, number, error.what()));
    }
    lines.push_back({text, number});
    if (lines.size() == kLines) {
      answer(o, file, lines, predictor, reader);
      lines.clear();
    }
  }
  answer(o, file, lines, predictor, reader);
}

size_t read_standard_input(char* out, size_t size) {
  const size_t count = std::fread(out, 1, size, stdin);
  if (std::ferror(stdin) == 0) return count;
  throw std::runtime_error(fmt::format("standard input: {}", std::strerror(errno)));
}

int run_predict(const PredictOptions& o) {
  Predictor predictor(o.run, o.checkpoint.of(o.run), o.engine);
  const CheckpointHeader& header = predictor.header();
  const InputReader reader(header.config.task, header.facts);
  const std::vector<std::string> files = o.files.empty() ? std::vector<std::string>{"-"} : o.files;
  for (const std::string& file : files) {
    if (file == "-") {
      if (!reader.takes_lines()) {
        throw std::invalid_argument(
            fmt::format("predict: task \"{}\" reads files, not standard input; name some",
                        header.config.task.name));
      }
      predict_lines(o, read_standard_input, "standard input", predictor, reader);
    } else if (!reader.files_are_lines()) {
      predict_file(o, file, predictor, reader);
    } else if (std::filesystem::is_directory(file)) {
      throw std::runtime_error(
          fmt::format("{}: is a folder; name files with one input per line", file));
    } else {
      stream_unpacked(
          file, [&](const ReadBytes& read) { predict_lines(o, read, file, predictor, reader); });
    }
  }
  return 0;
}

}  // namespace

void add_predict(CLI::App& app, Action& action) {
  auto options = std::make_shared<PredictOptions>();
  auto* command = app.add_subcommand(
      "predict", "Predict for inputs: lines of text, or files like the task's data");
  command->add_option("run", options->run, "run folder, or a checkpoint folder in it")->required();
  command->add_option("files", options->files, "files to read; none or -: standard input");
  add_checkpoint_option(*command, options->checkpoint);
  add_engine_options(*command, options->engine);
  command->add_flag("--json", options->json, "one line of JSON per input");
  command->callback([options, &action] { action = [options] { return run_predict(*options); }; });
}

}  // namespace rotrnn::cli
