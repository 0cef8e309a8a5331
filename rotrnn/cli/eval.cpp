#include "rotrnn/training/evaluate/evaluate.h"

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "rotrnn/base/message.h"
#include "rotrnn/cli/checkpoint_option.h"
#include "rotrnn/cli/command.h"
#include "rotrnn/cli/output/json_line.h"
#include "rotrnn/cli/output/score.h"
#include "rotrnn/cli/output/text.h"

namespace rotrnn::cli {
namespace {

struct EvalOptions {
  std::string run, split = "test", data;
  CheckpointOption checkpoint;
  EngineOptions engine;
  int64_t keep_every = 1;
  bool json = false;
};

void print_eval_json(const EvalOptions& o, const Evaluation& e) {
  const Scores& s = e.scores;
  nlohmann::ordered_json out{{"run", o.run},     {"checkpoint", e.checkpoint}, {"step", e.step},
                             {"split", o.split}, {"examples", s.examples},     {"loss", s.loss}};
  if (s.classes) {
    out["accuracy"] = s.accuracy;
    out["majority_share"] = e.majority.share;
    nlohmann::ordered_json classes = nlohmann::ordered_json::array();
    const auto scores = class_scores(s);
    for (size_t c = 0; c < scores.size(); ++c) {
      classes.push_back({{"class", e.classes.at(c)},
                         {"examples", scores[c].examples},
                         {"precision", scores[c].precision},
                         {"recall", scores[c].recall},
                         {"f1", scores[c].f1}});
    }
    out["classes"] = classes;
    nlohmann::ordered_json matrix = nlohmann::ordered_json::array();
    const size_t n = scores.size();
    for (size_t c = 0; c < n; ++c) {
      matrix.push_back(
          std::vector<int64_t>(s.confusion.begin() + static_cast<int64_t>(c * n),
                               s.confusion.begin() + static_cast<int64_t>((c + 1) * n)));
    }
    out["confusion"] = matrix;
  } else {
    out["mae"] = s.mae;
    out["mse"] = s.mse;
    out["naive_mae"] = s.naive_mae;
    out["naive_mse"] = s.naive_mse;
  }
  print_json_line(out);
}

int run_eval(const EvalOptions& o) {
  EvaluationRequest request;
  request.run = o.run;
  request.which = o.checkpoint.of(o.run);
  request.split = o.split;
  request.data_path = o.data;
  request.keep_every = o.keep_every;
  request.engine = o.engine;
  const Evaluation e = evaluate_run(request);
  if (o.json) {
    print_eval_json(o, e);
    return 0;
  }
  for (const std::string& text : e.messages) print_message("{}\n", text);
  fmt::print("{} {}{}, loss {:.4f}, {} examples\n", o.split, score_text(e.scores),
             e.scores.classes
                 ? fmt::format(" (majority class \"{}\": {})", e.classes.at(e.majority.label),
                               percent(e.majority.share))
                 : "",
             e.scores.loss, grouped(e.scores.examples));
  fmt::print("weights of step {} ({})\n", e.step, e.checkpoint);
  if (e.scores.classes) fmt::print("\n{}", class_table(e.scores, e.classes));
  return 0;
}

}  // namespace

void add_eval(CLI::App& app, Action& action) {
  auto options = std::make_shared<EvalOptions>();
  auto* command =
      app.add_subcommand("eval", "Evaluate a run on its data: accuracy, each class, errors");
  command->add_option("run", options->run, "run folder, or a checkpoint folder in it")->required();
  command->add_option("--split", options->split, "train, validation or test (default)")
      ->check(CLI::IsMember({"train", "validation", "test"}));
  add_checkpoint_option(*command, options->checkpoint);
  command->add_option("--data", options->data, "read this instead of the config's task.path");
  command
      ->add_option(
          "--keep-every", options->keep_every,
          "every k-th step only, with the time steps of the layer made k times longer; S5 and S4D")
      ->check(CLI::Range(1, 1024));
  add_engine_options(*command, options->engine);
  command->add_flag("--json", options->json, "one line of JSON");
  command->callback([options, &action] { action = [options] { return run_eval(*options); }; });
}

}  // namespace rotrnn::cli
