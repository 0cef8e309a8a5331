#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "rotrnn/base/message.h"
#include "rotrnn/base/text/nearest.h"
#include "rotrnn/cli/command.h"
#include "rotrnn/cli/version.h"

namespace {

using rotrnn::print_message;

constexpr int kFailed = 1, kWrongUse = 2;

// Messages of c10d carry a stack trace after the first line, which does not help users.
std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

// What was printed may not have arrived: a full disk shows when the rest is written out.
int printed(int code) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  print_message(
      "rotrnn: standard output could not be written, so what was printed is not whole; is the "
      "disk full?\n");
  return code == 0 ? kFailed : code;
}

// The first word when it is not a command; CLI11 would only report that it needs one.
std::string unknown_command(const CLI::App& app, int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') return "";
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (command->get_name() == argv[1]) return "";
    names.push_back(command->get_name());
  }
  const std::string near = rotrnn::nearest(argv[1], names);
  return fmt::format("unknown command \"{}\"; {}", argv[1],
                     near.empty() ? fmt::format("the commands are {}", fmt::join(names, ", "))
                                  : fmt::format("did you mean \"{}\"?", near));
}

}  // namespace

void rotrnn::cli::add_engine_options(CLI::App& command, EngineOptions& engine) {
  command.add_option("--threads", engine.threads, "0: as many as the process may use")
      ->check(CLI::Range(0, 4096));
  const auto choose = [&engine](const std::string& name) {
    engine.kernels = *by_name<Kernels>(name);
  };
  command.add_option_function<std::string>("--kernels", choose, "fused (default) or reference")
      ->check(CLI::IsMember(names_of<Kernels>()));
}

int main(int argc, char** argv) {
  using namespace rotrnn::cli;
  CLI::App app("Linear recurrent networks for long sequences on a CPU", "rotrnn");
  bool json = false;  // declared before --version, which is done with as soon as it is read
  CLI::Option* as_json = app.add_flag("--json", json, "with --version: one line of JSON");
  as_json->needs(app.set_version_flag(
      "--version", [&json] { return version_text(json); },
      "Version, commit, libraries, CPU and kernels, for reports of bugs"));
  app.require_subcommand(1);
  app.footer("Exit codes: 0 done, 1 failed, 2 wrong use. More: rotrnn COMMAND --help.");
  Action action;
  add_init(app, action);
  add_train(app, action);
  add_fit(app, action);
  add_eval(app, action);
  add_predict(app, action);
  add_stream(app, action);
  add_export(app, action);
  add_info(app, action);
  add_data(app, action);
  add_bench(app, action);
  add_norms(app, action);
  add_compare(app, action);
  // What launch starts is not for this command line.
  int ours = argc;
  if (argc > 1 && std::string_view(argv[1]) == "launch") {
    ours = static_cast<int>(std::find(argv, argv + argc, std::string_view("--")) - argv);
  }
  add_launch(app, action, {argv + std::min(ours + 1, argc), argv + argc});
  add_board(app, action);
  add_report(app, action);
  try {
    const std::string unknown = unknown_command(app, ours, argv);
    if (!unknown.empty()) throw std::invalid_argument(unknown);
    app.parse(ours, argv);
    return printed(action());
  } catch (const CLI::ParseError& error) {
    return printed(app.exit(error) == 0 ? 0 : kWrongUse);
  } catch (const std::invalid_argument& error) {
    print_message("rotrnn: {}\n", error.what());
    return kWrongUse;
  } catch (const std::exception& error) {
    print_message("rotrnn: {}\n", first_line(error.what()));
    return kFailed;
  }
}
