#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "rotrnn/cli/checkpoint_option.h"
#include "rotrnn/cli/command.h"
#include "rotrnn/cli/output/json_line.h"
#include "rotrnn/cli/output/text.h"
#include "rotrnn/io/atomic_file.h"
#include "rotrnn/onnx/export.h"
#include "rotrnn/training/export/export.h"

namespace rotrnn::cli {
namespace {

namespace fs = std::filesystem;

struct ExportOptions {
  std::string run, out, format = "safetensors", graph = "all";
  CheckpointOption checkpoint;
  bool force = false, json = false;
};

void print_comparison(const ExportReport& r) {
  fmt::print("compared with the network in double: logits up to {:.3g} differ by {:.1e} at most\n",
             r.largest, r.difference);
}

int run_safetensors(const ExportOptions& o) {
  if (fs::is_regular_file(o.run)) {
    throw std::invalid_argument(fmt::format(
        "{}: is a file, not a run folder; of an exported model, --format onnx makes graphs",
        o.run));
  }
  ExportRequest request;
  request.run = o.run;
  request.out = o.out.empty() ? (request.run / "model.safetensors").string() : o.out;
  request.which = o.checkpoint.of(o.run);
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
    print_json_line(out);
    return 0;
  }
  fmt::print("{}: {} numbers, {}, weights of step {}\n", file, grouped(r.parameters),
             bytes(static_cast<double>(r.bytes)), r.step);
  print_comparison(r);
  const std::string word = shell_word(file);
  fmt::print("next: {} info {}\n", program(), word);
  if (r.streams) {
    fmt::print("      {} stream {} FILE   # a sound, a text, or numbers, one line per step\n",
               program(), word);
  }
  fmt::print("      {} predict {} FILE   # files like the training data\n", program(),
             shell_word(o.run));
  return 0;
}

// Beside the run's other files, or beside the model.
OnnxRequest onnx_request(const ExportOptions& o, bool file) {
  OnnxRequest request;
  request.graph = o.graph;
  request.overwrite = o.force;
  request.out = o.out;
  if (o.out.empty()) {
    const fs::path run = o.run;
    request.out = file ? fs::path(run).replace_extension(".onnx") : run / "model.onnx";
    if (o.graph != "all") request.out.replace_extension("." + o.graph + ".onnx");
  }
  return request;
}

int run_onnx(const ExportOptions& o) {
  const bool file = fs::is_regular_file(o.run);
  const FoldedRun folded =
      file ? FoldedRun{read_file(o.run), {}} : fold_run(o.run, o.checkpoint.of(o.run));
  const OnnxReport report = write_onnx(folded.bytes, o.run, onnx_request(o, file));
  const ExportReport& r = folded.report;
  if (o.json) {
    nlohmann::ordered_json out;
    for (const OnnxFile& one : report.files) {
      out["files"].push_back(
          {{"file", one.file.string()}, {"graph", one.graph}, {"bytes", one.bytes}});
    }
    out["streams"] = report.whole_only.empty();
    if (!file) {
      out["step"] = r.step;
      out["largest_difference"] = r.difference;
      out["largest_logit"] = r.largest;
    }
    print_json_line(out);
    return 0;
  }
  for (const OnnxFile& one : report.files) {
    fmt::print("{}: {} graph, {}\n", one.file.string(), one.graph,
               bytes(static_cast<double>(one.bytes)));
  }
  if (!report.whole_only.empty()) {
    fmt::print("no step and no chunk graph: {}\n", report.whole_only);
  }
  if (!file) print_comparison(r);
  fmt::print("next: docs/deploy.md\n");
  return 0;
}

int run_export(const ExportOptions& o) {
  if (o.format == "onnx") return run_onnx(o);
  if (o.graph != "all") {
    throw std::invalid_argument("--graph is of --format onnx; a safetensors file holds the model");
  }
  return run_safetensors(o);
}

}  // namespace

void add_export(CLI::App& app, Action& action) {
  auto options = std::make_shared<ExportOptions>();
  auto* command =
      app.add_subcommand("export", "Write a run for use: folded, checked against the network");
  command
      ->add_option("run", options->run,
                   "run folder, or a checkpoint folder in it; for onnx also a model that was "
                   "exported as safetensors")
      ->required();
  command->add_option("--out", options->out,
                      "file to write; default: RUN/model.safetensors, or RUN/model.onnx, where "
                      "each of several graphs has its name before .onnx: model.step.onnx");
  command->add_option("--format", options->format, "safetensors (default) or onnx; docs/deploy.md")
      ->check(CLI::IsMember({"safetensors", "onnx"}));
  command
      ->add_option("--graph", options->graph,
                   "of onnx: step (one step, with states), chunk (some steps, with states), "
                   "sequence (whole sequences) or all (default); bidirectional models, pairs and "
                   "permuted sequences have the last one only")
      ->check(CLI::IsMember({"step", "chunk", "sequence", "all"}));
  add_checkpoint_option(*command, options->checkpoint);
  command->add_flag("--force", options->force, "replace a file that exists");
  command->add_flag("--json", options->json, "one line of JSON");
  command->callback([options, &action] { action = [options] { return run_export(*options); }; });
}

}  // namespace rotrnn::cli
