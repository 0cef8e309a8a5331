#include "rotrnn/training/evaluate.h"

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "rotrnn/cli/command.h"
#include "rotrnn/cli/text.h"

namespace rotrnn::cli {
namespace {

struct Options {
  std::string run, split = "test", checkpoint = "best", data;
  EngineOptions engine;
  bool json = false;
};

int run(const Options& o) {
  const Evaluation e = evaluate_run(o.run, o.checkpoint == "best" ? Which::best : Which::last,
                                    o.split, o.data, o.engine);
  if (o.json) {
    fmt::print("{}\n", nlohmann::ordered_json{{"run", o.run},
                                              {"checkpoint", o.checkpoint},
                                              {"step", e.step},
                                              {"split", o.split},
                                              {"examples", e.scores.examples},
                                              {"accuracy", e.scores.accuracy},
                                              {"loss", e.scores.loss},
                                              {"majority_share", e.majority.share}}
                           .dump());
    return 0;
  }
  fmt::print("{} accuracy {} (always saying \"{}\" gives {}), loss {:.4f}, {} examples\n", o.split,
             percent(e.scores.accuracy), e.majority.label, percent(e.majority.share), e.scores.loss,
             grouped(e.scores.examples));
  fmt::print("weights of step {} ({})\n", e.step, o.checkpoint);
  return 0;
}

}  // namespace

void add_eval(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  auto* command = app.add_subcommand("eval", "Accuracy of a run on its data");
  command->add_option("run", options->run, "run folder")->required();
  command->add_option("--split", options->split, "train, validation or test (default)")
      ->check(CLI::IsMember({"train", "validation", "test"}));
  command->add_option("--checkpoint", options->checkpoint, "best (default) or last")
      ->check(CLI::IsMember({"best", "last"}));
  command->add_option("--data", options->data, "folder to read instead of the config's task.path");
  add_engine_options(*command, options->engine);
  command->add_flag("--json", options->json, "one line of JSON");
  command->callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace rotrnn::cli
