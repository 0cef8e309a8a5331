#include "rotrnn/cli/output/interrupt.h"

#include <unistd.h>

#include <csignal>

namespace rotrnn::cli {
namespace {

volatile std::sig_atomic_t stop_requested = 0;
volatile std::sig_atomic_t saves = 0;

// The next one ends the program at once, as if it had never been caught: what is being saved is
// whole or not there.
void request_stop(int) {
  stop_requested = 1;
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
  constexpr char kText[] = "\nstopping and saving after this step; once more ends it at once\n";
  if (saves) {
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, kText, sizeof kText - 1);
  }
}

}  // namespace

void catch_interrupts(bool announce) {
  saves = announce;
  std::signal(SIGINT, request_stop);
  std::signal(SIGTERM, request_stop);
}

bool interrupted() {
  return stop_requested != 0;
}

}  // namespace rotrnn::cli
