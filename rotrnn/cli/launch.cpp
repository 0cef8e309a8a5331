#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <stdexcept>

#include "rotrnn/base/message.h"
#include "rotrnn/cli/command.h"
#include "rotrnn/cli/output/text.h"
#include "rotrnn/distributed/reach.h"

namespace rotrnn::cli {
namespace {

using Clock = std::chrono::steady_clock;

// The others notice by themselves that one has died, and name it.
constexpr auto kGrace = std::chrono::seconds(15);

struct LaunchOptions {
  int processes = 2;
};

// Signals that came and have not been passed on yet.
volatile std::sig_atomic_t pending[3] = {};
constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};

void note_signal(int signal) {
  for (size_t i = 0; i < std::size(kSignals); ++i) {
    if (kSignals[i] == signal) pending[i] = pending[i] + 1;
  }
}

struct Process {
  pid_t id = -1;
  int errors = -1;  // its standard error, or -1 when it has ours
  std::string line;
  bool running = false;
};

void set(const char* name, const std::string& value) {
  ::setenv(name, value.c_str(), 1);
}

[[noreturn]] void become(const std::vector<std::string>& arguments, int rank, int size, int port,
                         int errors, pid_t parent) {
  // A group of its own: the terminal's Ctrl-C comes to this process alone, which passes it on once.
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(1);
  for (const int signal : kSignals) std::signal(signal, SIG_DFL);
  if (errors >= 0) ::dup2(errors, STDERR_FILENO);
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                           "TORCHELASTIC_USE_AGENT_STORE", "TORCHELASTIC_RESTART_COUNT"}) {
    ::unsetenv(name);
  }
  set("RANK", std::to_string(rank));
  set("LOCAL_RANK", std::to_string(rank));
  set("WORLD_SIZE", std::to_string(size));
  set("LOCAL_WORLD_SIZE", std::to_string(size));
  set("MASTER_ADDR", "127.0.0.1");
  set("MASTER_PORT", std::to_string(port));
  std::vector<char*> argv;
  std::string name = "rotrnn";
  argv.push_back(name.data());
  for (const std::string& a : arguments) argv.push_back(const_cast<char*>(a.c_str()));
  argv.push_back(nullptr);
  ::execv("/proc/self/exe", argv.data());
  print_message("rotrnn launch: cannot start rank {}: {}\n", rank, std::strerror(errno));
  ::_exit(1);
}

Process start(const std::vector<std::string>& arguments, int rank, int size, int port) {
  int ends[2] = {-1, -1};
  if (rank > 0 && ::pipe2(ends, O_CLOEXEC) != 0) {
    throw std::runtime_error(
        fmt::format("launch: no pipe for rank {}: {}", rank, std::strerror(errno)));
  }
  const pid_t parent = ::getpid();
  Process process;
  process.id = ::fork();
  if (process.id == 0) become(arguments, rank, size, port, ends[1], parent);
  if (ends[1] >= 0) ::close(ends[1]);
  if (process.id < 0) {
    throw std::runtime_error(
        fmt::format("launch: rank {} cannot be started: {}", rank, std::strerror(errno)));
  }
  process.errors = ends[0];
  process.running = true;
  return process;
}

// Passes on whole lines of a rank's messages with its number before them.
void relay(Process& process, int rank) {
  char buffer[4096];
  const ssize_t got = ::read(process.errors, buffer, sizeof buffer);
  if (got < 0 && errno == EINTR) return;
  if (got > 0) process.line.append(buffer, static_cast<size_t>(got));
  if (got <= 0 && !process.line.empty()) process.line += '\n';
  for (size_t end; (end = process.line.find('\n')) != std::string::npos;) {
    print_message("[rank {}] {}\n", rank, process.line.substr(0, end));
    process.line.erase(0, end + 1);
  }
  if (got <= 0) {
    ::close(process.errors);
    process.errors = -1;
  }
}

class Launcher {
 public:
  Launcher(const std::vector<std::string>& arguments, int size) {
    const int port = free_port();
    for (const int signal : kSignals) std::signal(signal, note_signal);
    try {
      for (int rank = 0; rank < size; ++rank) {
        processes_.push_back(start(arguments, rank, size, port));
      }
    } catch (...) {
      signal_all(SIGKILL);
      throw;
    }
  }

  int run() {
    while (running() || open()) {
      pass_signals();
      read_errors();
      reap();
      if (failed_ && running() && Clock::now() > deadline_) {
        print_message("rotrnn launch: the others did not end within {} s and are killed\n",
                      kGrace.count());
        signal_all(SIGKILL);
        deadline_ = Clock::time_point::max();
      }
    }
    return code_;
  }

 private:
  bool running() const {
    return std::any_of(processes_.begin(), processes_.end(),
                       [](const Process& p) { return p.running; });
  }
  bool open() const {
    return std::any_of(processes_.begin(), processes_.end(),
                       [](const Process& p) { return p.errors >= 0; });
  }

  void signal_all(int signal) {
    for (const Process& p : processes_) {
      if (p.running) ::kill(p.id, signal);
    }
  }

  void pass_signals() {
    for (size_t i = 0; i < std::size(kSignals); ++i) {
      while (pending[i] > 0) {
        pending[i] = pending[i] - 1;
        signal_all(kSignals[i] == SIGHUP ? SIGTERM : kSignals[i]);
      }
    }
  }

  void read_errors() {
    std::vector<pollfd> files;
    std::vector<size_t> ranks;
    for (size_t rank = 0; rank < processes_.size(); ++rank) {
      if (processes_[rank].errors < 0) continue;
      files.push_back({processes_[rank].errors, POLLIN, 0});
      ranks.push_back(rank);
    }
    if (::poll(files.data(), files.size(), 50) <= 0) return;
    for (size_t i = 0; i < files.size(); ++i) {
      if (files[i].revents != 0) relay(processes_[ranks[i]], static_cast<int>(ranks[i]));
    }
  }

  void reap() {
    for (size_t rank = 0; rank < processes_.size(); ++rank) {
      Process& p = processes_[rank];
      int status = 0;
      if (!p.running || ::waitpid(p.id, &status, WNOHANG) != p.id) continue;
      p.running = false;
      const bool killed = WIFSIGNALED(status);
      const int code = killed ? 1 : WEXITSTATUS(status);
      if (code == 0) continue;
      if (killed && !failed_) {
        print_message("rotrnn launch: rank {} was ended by signal {} ({})\n", rank,
                      WTERMSIG(status), strsignal(WTERMSIG(status)));
      }
      if (!failed_) deadline_ = Clock::now() + kGrace;
      failed_ = true;
      // One rank finds the wrong use, and the others only hear of it.
      if (code_ == 0 || code == 2) code_ = code;
    }
  }

  std::vector<Process> processes_;
  bool failed_ = false;
  Clock::time_point deadline_;
  int code_ = 0;
};

int run_launch(const LaunchOptions& options, const std::vector<std::string>& started) {
  const bool messages = started.size() > 1 && started[0] == "bench" && started[1] == "messages";
  if (started.empty() || (started[0] != "train" && !messages)) {
    throw std::invalid_argument(fmt::format(
        "launch: {}; put the command of the processes after two dashes, such as {} launch -n 2 -- "
        "train configs/quickstart.toml",
        started.empty() ? "there is nothing to start"
                        : fmt::format("\"{}\" is not for several processes", started[0]),
        program()));
  }
  return Launcher(started, options.processes).run();
}

}  // namespace

void add_launch(CLI::App& app, Action& action, const std::vector<std::string>& started) {
  auto options = std::make_shared<LaunchOptions>();
  auto* command = app.add_subcommand("launch", "Train with several processes on this machine");
  command->add_option("-n,--processes", options->processes, "how many; they share the CPUs")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command->footer(
      "The command to start follows two dashes: rotrnn launch -n 2 -- train CONFIG\n"
      "Ctrl-C stops all at the same step and saves. When one dies the others end too; continue "
      "with\n"
      "train --resume, also with another number of processes. For several machines use\n"
      "torchrun, mpirun or srun: docs/scaling.md");
  command->callback([options, started, &action] {
    action = [options, started] { return run_launch(*options, started); };
  });
}

}  // namespace rotrnn::cli
