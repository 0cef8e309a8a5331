#include "rotrnn/cli/stop.h"

#include <csignal>

namespace rotrnn::cli {
namespace {

volatile std::sig_atomic_t requested = 0;

void request(int) {
  requested = 1;
}

}  // namespace

void watch_for_stop() {
  std::signal(SIGINT, request);
  std::signal(SIGTERM, request);
}

bool stop_requested() {
  return requested != 0;
}

}  // namespace rotrnn::cli
