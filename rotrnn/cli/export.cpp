#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "rotrnn/cli/command.h"
#include "rotrnn/cli/text.h"
#include "rotrnn/training/export.h"

namespace rotrnn::cli {
namespace {

struct Options {
  std::string run, out, format = "safetensors", checkpoint = "best";
  bool force = false, json = false;
};

int run(const Options& o) {
  ExportRequest request;
  request.run = o.run;
  request.out = o.out.empty() ? (request.run / "model.safetensors").string() : o.out;
  request.which = o.checkpoint == "best" ? Which::best : Which::last;
  request.overwrite = o.force;
  const ExportReport r = export_model(request);
  const std::string file = request.out.string();
  if (o.json) {
    const nlohmann::ordered_json out{{"file", file},
                                     {"bytes", r.bytes},
                                     {"numbers", r.parameters},
                                     {"step", r.step},
                                     {"streams", r.streams},
                                     {"largest_difference", r.difference},
                                     {"largest_logit", r.largest}};
    fmt::print("{}\n", out.dump());
    return 0;
  }
  fmt::print("{}: {} numbers, {}, weights of step {}\n", file, grouped(r.parameters),
             bytes(static_cast<double>(r.bytes)), r.step);
  fmt::print("compared with the network in double: logits up to {:.3g} differ by {:.1e} at most\n",
             r.largest, r.difference);
  const std::string word = shell_word(file);
  fmt::print("next: {} info {}\n", program(), word);
  if (r.streams) fmt::print("      {} stream {} < INPUT\n", program(), word);
  return 0;
}

}  // namespace

void add_export(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  auto* command = app.add_subcommand(
      "export", "Write a run as one file for use: folded, checked against the network");
  command->add_option("run", options->run, "run folder, or a checkpoint folder in it")->required();
  command->add_option("--out", options->out, "file to write; default: RUN/model.safetensors");
  command->add_option("--format", options->format, "safetensors (docs/model_format.md)")
      ->check(CLI::IsMember({"safetensors"}));
  command->add_option("--checkpoint", options->checkpoint, "best (default) or last")
      ->check(CLI::IsMember({"best", "last"}));
  command->add_flag("--force", options->force, "replace a file that exists");
  command->add_flag("--json", options->json, "one line of JSON");
  command->callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace rotrnn::cli
