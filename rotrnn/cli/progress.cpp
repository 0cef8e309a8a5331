#include "rotrnn/cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>

#include "rotrnn/cli/score.h"
#include "rotrnn/cli/text.h"

namespace rotrnn::cli {
namespace {

constexpr int kBar = 24;
// A bar is drawn often enough to look alive; lines in a log file only now and then.
constexpr double kBarSeconds = 0.1, kLineSeconds = 10;

double now() {
  using namespace std::chrono;
  return std::chrono::duration<double>(steady_clock::now().time_since_epoch()).count();
}

}  // namespace

Progress::Progress(bool quiet) : quiet_(quiet), terminal_(isatty(STDERR_FILENO) == 1) {}

void Progress::clear() {
  if (drawn_) fmt::print(stderr, "\r\033[K");
  drawn_ = false;
}

void Progress::message(const std::string& text) {
  if (quiet_) return;
  clear();
  fmt::print(stderr, "{}\n", text);
}

void Progress::warning(const std::string& text) {
  clear();
  fmt::print(stderr, "warning: {}\n", text);
}

void Progress::step(const StepReport& r) {
  const bool last = r.step == r.steps;
  if (quiet_ || (!last && now() - last_shown_ < (terminal_ ? kBarSeconds : kLineSeconds))) return;
  last_shown_ = now();
  const std::string facts =
      fmt::format("step {}/{}  loss {:.4f}  {} tokens/s  {} left{}", r.step, r.steps, r.loss,
                  grouped(static_cast<int64_t>(r.tokens_per_second)), duration(r.seconds_left),
                  r.skipped > 0 ? fmt::format("  {} skipped", grouped(r.skipped)) : "");
  if (!terminal_) {
    fmt::print(stderr, "{}\n", facts);
    return;
  }
  const auto full = static_cast<int>(kBar * r.step / r.steps);
  clear();
  fmt::print(stderr, "[{}{}] {}", std::string(full, '='), std::string(kBar - full, ' '), facts);
  std::fflush(stderr);
  drawn_ = true;
}

void Progress::evaluation(const EvaluationReport& r) {
  message(fmt::format("step {}  validation {}  loss {:.4f}{}", r.step, score_text(r.scores),
                      r.scores.loss, r.best ? "  best so far" : ""));
}

void Progress::finish() {
  clear();
}

}  // namespace rotrnn::cli
