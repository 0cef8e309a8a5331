#include "rotrnn/cli/interrupt.h"

#include <csignal>

namespace rotrnn::cli {
namespace {

volatile std::sig_atomic_t stop_requested = 0;

void request_stop(int) {
  stop_requested = 1;
}

}  // namespace

void catch_interrupts() {
  std::signal(SIGINT, request_stop);
  std::signal(SIGTERM, request_stop);
}

bool interrupted() {
  return stop_requested != 0;
}

}  // namespace rotrnn::cli
