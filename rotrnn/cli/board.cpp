#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <thread>

#include "rotrnn/board/server/server.h"
#include "rotrnn/cli/command.h"
#include "rotrnn/cli/output/interrupt.h"
#include "rotrnn/cli/output/text.h"

namespace rotrnn::cli {
namespace {

struct BoardOptions {
  std::vector<std::string> folders{"runs"};
  board::ServerOptions server;
};

int run_board(const BoardOptions& o) {
  board::Api api({o.folders.begin(), o.folders.end()});
  board::Server server(api, o.server);
  const board::Found found = api.found();
  catch_interrupts();
  fmt::print("{} runs{}; the board is at\n  {}\n", found.runs.size(),
             found.runs.empty() ? " yet, new ones appear by themselves" : "", server.address());
  if (!server.token().empty()) {
    fmt::print("anyone with this address can see the runs; the connection is not encrypted\n");
  }
  fmt::print("Ctrl-C ends it\n");
  std::fflush(stdout);
  std::atomic<bool> ended = false;
  std::thread serving([&] {
    server.run();
    ended = true;
  });
  while (!interrupted() && !ended) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const bool asked = interrupted();
  while (!ended) {  // a stop before it listens would be lost
    server.stop();
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  serving.join();
  if (!asked) throw std::runtime_error("board: the server ended by itself");
  return 0;
}

}  // namespace

void add_board(CLI::App& app, Action& action) {
  auto o = std::make_shared<BoardOptions>();
  auto* command = app.add_subcommand("board", "Show runs in the browser, live while they train");
  command->add_option("runs", o->folders, "run folders, or folders with runs in them")
      ->capture_default_str();
  command->add_option("--port", o->server.port, "0: any that is free")
      ->capture_default_str()
      ->check(CLI::Range(0, 65535));
  command
      ->add_option("--host", o->server.host,
                   "address to listen on; other than this machine's own, a token is asked for")
      ->capture_default_str();
  command->add_flag("--token", o->server.token, "ask for a token on this machine too");
  command->footer(
      "Examples:\n"
      "  rotrnn board runs                        all runs below a folder\n"
      "  rotrnn board runs/a runs/b --port 8000   two of them\n"
      "  rotrnn board runs --host 0.0.0.0         for other machines, by the address it prints\n"
      "More in docs/training.md.");
  command->callback([o, &action] { action = [o] { return run_board(*o); }; });
}

}  // namespace rotrnn::cli
