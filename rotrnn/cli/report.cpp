#include "rotrnn/board/report.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>
#include <memory>
#include <stdexcept>

#include "rotrnn/cli/command.h"
#include "rotrnn/cli/output/text.h"
#include "rotrnn/io/atomic_file.h"

namespace rotrnn::cli {
namespace {

namespace fs = std::filesystem;

struct ReportOptions {
  std::vector<std::string> folders;
  std::string out, svg, title;
  bool force = false;
};

int run_report(const ReportOptions& o) {
  const fs::path first = fs::path(o.folders.front()).lexically_normal();
  const fs::path out = !o.out.empty()          ? fs::path(o.out)
                       : o.folders.size() == 1 ? first / "report.html"
                                               : fs::path("report.html");
  check_free(out, o.force);
  board::Api api({o.folders.begin(), o.folders.end()});
  const std::string date = fmt::format("{:%Y-%m-%d %H:%M}", fmt::localtime(std::time(nullptr)));
  const board::Report report = board::make_report(api, o.title, date);
  std::vector<fs::path> files;
  for (const board::Picture& picture : report.pictures) {
    if (o.svg.empty()) break;
    files.push_back(fs::path(o.svg) / (picture.name + ".svg"));
    check_free(files.back(), o.force);
  }
  if (!files.empty()) fs::create_directories(o.svg);
  for (size_t i = 0; i < files.size(); ++i) {
    write_file_atomically(files[i], report.pictures[i].svg);
  }
  write_file_atomically(out, report.html);
  fmt::print("{}: {}, {}; open it in a browser\n", out.string(),
             counted(static_cast<int64_t>(report.runs), "run"),
             bytes(static_cast<double>(report.html.size())));
  if (!files.empty()) fmt::print("{}: {}\n", o.svg, counted(std::ssize(files), "chart"));
  return 0;
}

}  // namespace

void add_report(CLI::App& app, Action& action) {
  auto o = std::make_shared<ReportOptions>();
  o->title = "rotrnn report";
  auto* command =
      app.add_subcommand("report", "Write runs as one HTML file, and their charts as SVG");
  command->add_option("runs", o->folders, "run folders, or folders with runs in them")->required();
  command->add_option("--out", o->out,
                      "file to write; default: report.html in the folder, or here for several");
  command->add_option("--svg", o->svg, "folder to write every chart into as SVG");
  command->add_option("--title", o->title, "what is written above it")->capture_default_str();
  command->add_flag("--force", o->force, "replace files that exist");
  command->footer(
      "Examples:\n"
      "  rotrnn report runs/listops                                  runs/listops/report.html\n"
      "  rotrnn report runs/a runs/b --out ab.html --svg pictures    two runs, and their charts\n"
      "More in docs/training.md.");
  command->callback([o, &action] { action = [o] { return run_report(*o); }; });
}

}  // namespace rotrnn::cli
