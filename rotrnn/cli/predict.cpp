#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <stdexcept>

#include "rotrnn/cli/command.h"
#include "rotrnn/cli/text.h"
#include "rotrnn/training/predictor.h"

namespace rotrnn::cli {
namespace {

struct Options {
  std::string run, checkpoint = "best";
  std::vector<std::string> files;
  EngineOptions engine;
  bool json = false;
};

// Lines of one batch: what is read from a pipe is answered in parts of this size.
constexpr size_t kLines = 64;

struct Line {
  std::string text;
  int64_t number;
};

// `place` is what the number counts: lines from 1, or inputs of a file from 0.
void print_prediction(const Options& o, const std::string& file, const char* place, int64_t number,
                      const Prediction& p, const std::vector<std::string>& classes) {
  if (o.json) {
    nlohmann::ordered_json probabilities;
    for (size_t i = 0; i < classes.size(); ++i) probabilities[classes[i]] = p.probabilities[i];
    fmt::print("{}\n", nlohmann::ordered_json{{"file", file},
                                              {place, number},
                                              {"label", classes.at(p.label)},
                                              {"probabilities", probabilities}}
                           .dump());
    return;
  }
  std::vector<std::string> parts;
  for (size_t i = 0; i < classes.size(); ++i) {
    parts.push_back(fmt::format("{}:{:.3f}", classes[i], p.probabilities[i]));
  }
  fmt::print("{}\t{}\n", classes.at(p.label), fmt::join(parts, " "));
}

void answer(const Options& o, const std::string& file, const std::vector<Line>& lines,
            Predictor& predictor) {
  std::vector<std::string> texts;
  for (const Line& line : lines) texts.push_back(line.text);
  const auto predictions = predictor.predict(texts);
  for (size_t i = 0; i < lines.size(); ++i) {
    print_prediction(o, file, "line", lines[i].number, predictions[i],
                     predictor.header().facts.classes);
  }
  std::fflush(stdout);
}

// A file that holds many inputs, such as one of images.
void predict_file(const Options& o, const std::string& file, Predictor& predictor) {
  const Examples inputs = read_inputs(predictor.header().config.task, file);
  for (int64_t begin = 0; begin < inputs.size(); begin += static_cast<int64_t>(kLines)) {
    std::vector<int64_t> numbers(std::min<size_t>(kLines, inputs.size() - begin));
    std::iota(numbers.begin(), numbers.end(), begin);
    const auto predictions = predictor.predict(inputs, numbers);
    for (size_t i = 0; i < numbers.size(); ++i) {
      print_prediction(o, file, "index", numbers[i], predictions[i],
                       predictor.header().facts.classes);
    }
  }
}

// A line that cannot be read stops everything with its place, after the answers before it.
void predict_lines(const Options& o, std::istream& in, const std::string& file,
                   Predictor& predictor) {
  std::vector<Line> lines;
  bool table = false;
  int64_t number = 0;
  for (std::string text; std::getline(in, text);) {
    ++number;
    if (text.ends_with('\r')) text.pop_back();
    if (number == 1 && text == "Source\tTarget") {  // the public ListOps files
      table = true;
      continue;
    }
    if (table) text = text.substr(0, text.find('\t'));
    if (text.find_first_not_of(" \t") == std::string::npos) continue;
    try {
      encode_text(predictor.header().config.task, text);
    } catch (const std::invalid_argument& error) {
      answer(o, file, lines, predictor);
      throw std::runtime_error(fmt::format("{}:{}: {}", file, number, error.what()));
    }
    lines.push_back({text, number});
    if (lines.size() == kLines) {
      answer(o, file, lines, predictor);
      lines.clear();
    }
  }
  answer(o, file, lines, predictor);
}

int run(const Options& o) {
  Predictor predictor(o.run, o.checkpoint == "best" ? Which::best : Which::last, o.engine);
  const std::vector<std::string> files = o.files.empty() ? std::vector<std::string>{"-"} : o.files;
  for (const std::string& file : files) {
    if (reads_files(predictor.header().config.task)) {
      if (file == "-") {
        throw std::invalid_argument(
            fmt::format("predict: task \"{}\" reads files, not standard input; name one, such as "
                        "t10k-images-idx3-ubyte.gz",
                        predictor.header().config.task.name));
      }
      predict_file(o, file, predictor);
      continue;
    }
    if (file == "-") {
      predict_lines(o, std::cin, "standard input", predictor);
      continue;
    }
    if (std::filesystem::is_directory(file)) {
      throw std::runtime_error(
          fmt::format("{}: is a folder; name files with one input a line", file));
    }
    std::ifstream in(file);
    if (!in) throw std::runtime_error(fmt::format("{}: {}", file, std::strerror(errno)));
    predict_lines(o, in, file, predictor);
  }
  return 0;
}

}  // namespace

void add_predict(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  auto* command = app.add_subcommand(
      "predict", "Label and probabilities for inputs: lines of text, or images of an IDX file");
  command->add_option("run", options->run, "run folder")->required();
  command->add_option("files", options->files, "files to read; none or -: standard input");
  command->add_option("--checkpoint", options->checkpoint, "best (default) or last")
      ->check(CLI::IsMember({"best", "last"}));
  add_engine_options(*command, options->engine);
  command->add_flag("--json", options->json, "a line of JSON for each input");
  command->callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace rotrnn::cli
