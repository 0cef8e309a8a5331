#include "rotrnn/cli/output/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "rotrnn/base/message.h"
#include "rotrnn/cli/output/score.h"
#include "rotrnn/cli/output/text.h"
#include "rotrnn/plot/terminal_plot.h"

namespace rotrnn::cli {
namespace {

constexpr int64_t kSpark = 16;
constexpr std::size_t kMostValues = 512;
// A line is drawn often enough to look alive; lines in a log file only now and then.
constexpr double kDrawSeconds = 0.1, kLineSeconds = 10;

double now() {
  using namespace std::chrono;
  return std::chrono::duration<double>(steady_clock::now().time_since_epoch()).count();
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

// Asked for every line, so that it follows a window that changes.
int64_t terminal_columns() {
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 80;
}

// A piece of the line. The line has those pieces that fit, the most important first, in their
// order.
struct Piece {
  int importance;  // 0: the most
  std::string text;
  const char* colour = "";
};

std::string cut(const std::string& text, int64_t columns) {
  std::string out;
  for (const char c : text) {
    if ((c & 0xc0) != 0x80 && columns-- <= 0) break;
    out += c;
  }
  return out;
}

std::string line_of(const std::vector<Piece>& pieces, int64_t columns, bool colour) {
  std::vector<bool> taken(pieces.size());
  int64_t used = 0;
  for (int importance = 0; importance < static_cast<int>(pieces.size()); ++importance) {
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      const int64_t width = columns_of(pieces[i].text) + (used > 0 ? 2 : 0);
      if (pieces[i].importance != importance || pieces[i].text.empty()) continue;
      if (used > 0 && used + width > columns) continue;
      taken[i] = true;
      used += width;
    }
  }
  std::string out;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (!taken[i]) continue;
    if (!out.empty()) out += "  ";
    const bool paint = colour && *pieces[i].colour != 0;
    const std::string text = cut(pieces[i].text, columns);
    out += paint ? fmt::format("\033[{}m{}\033[0m", pieces[i].colour, text) : text;
  }
  return out;
}

constexpr const char *kCyan = "36", *kGreen = "32";

}  // namespace

void Curve::add(double value) {
  sum_ += value;
  if (++gathered_ < each_) return;
  values_.push_back(sum_ / static_cast<double>(gathered_));
  sum_ = 0;
  gathered_ = 0;
  if (values_.size() < kMostValues) return;
  for (std::size_t i = 0; i < kMostValues / 2; ++i) {
    values_[i] = (values_[2 * i] + values_[2 * i + 1]) / 2;
  }
  values_.resize(kMostValues / 2);
  each_ *= 2;
}

std::vector<double> Curve::values() const {
  std::vector<double> out = values_;
  if (gathered_ > 0) out.push_back(sum_ / static_cast<double>(gathered_));
  return out;
}

Progress::Progress(bool quiet)
    : quiet_(quiet),
      terminal_(isatty(STDERR_FILENO) == 1 && environment("TERM") != "dumb"),
      colour_(terminal_ && environment("NO_COLOR").empty()) {}

Progress::~Progress() {
  clear();
}

void Progress::clear() {
  if (drawn_) print_message("\r\033[K");
  drawn_ = false;
}

void Progress::message(const std::string& text) {
  if (quiet_) return;
  clear();
  print_message("{}\n", text);
}

void Progress::warning(const std::string& text) {
  clear();
  print_message("warning: {}\n", text);
}

void Progress::step(const StepReport& r) {
  if (r.step <= last_step_) {  // another run
    losses_ = {};
    scores_.clear();
  }
  last_step_ = r.step;
  losses_.add(r.loss);
  const bool last = r.step == r.steps;
  if (quiet_ || (!last && now() - last_shown_ < (terminal_ ? kDrawSeconds : kLineSeconds))) return;
  last_shown_ = now();
  if (terminal_) {
    draw(r);
    return;
  }
  print_message("step {}/{}  loss {:.4f}  {} tokens/s  {} left{}\n", r.step, r.steps, r.loss,
                grouped(static_cast<int64_t>(r.tokens_per_second)), duration(r.seconds_left),
                r.skipped > 0 ? fmt::format("  {} skipped", grouped(r.skipped)) : "");
}

void Progress::draw(const StepReport& r) {
  std::string score;
  if (!scores_.empty()) {
    score = accuracies_ ? "accuracy " + percent(scores_.back())
                        : fmt::format("validation {:.4f}", scores_.back());
  }
  const auto share = static_cast<int>(100 * r.step / r.steps);
  const std::vector<Piece> pieces{
      {0, fmt::format("step {}/{}", r.step, r.steps)},
      {5, fmt::format("{} %", share)},
      {1, fmt::format("loss {:.4f}", r.loss)},
      {3, sparkline(losses_.values(), kSpark), kCyan},
      {4, score},
      {7, scores_.size() > 1 ? sparkline(scores_, kSpark) : "", kGreen},
      {6, fmt::format("{} tokens/s", grouped(static_cast<int64_t>(r.tokens_per_second)))},
      {2, fmt::format("{} left", duration(r.seconds_left))},
      {2, r.skipped > 0 ? fmt::format("{} skipped", grouped(r.skipped)) : ""}};
  // The last column stays free: some terminals wrap there.
  const std::string line = line_of(pieces, terminal_columns() - 1, colour_);
  clear();
  print_message("{}", line);
  std::fflush(stderr);
  drawn_ = true;
}

void Progress::evaluation(const EvaluationReport& r) {
  accuracies_ = r.scores.classes;
  scores_.push_back(accuracies_ ? r.scores.accuracy : r.scores.loss);
  message(fmt::format("step {}  validation {}  loss {:.4f}{}", r.step, score_text(r.scores),
                      r.scores.loss, r.best ? "  best so far" : ""));
}

void Progress::finish() {
  clear();
  const std::vector<double> losses = losses_.values();
  if (quiet_ || !terminal_ || losses.empty()) return;
  std::vector<Piece> pieces{{0, fmt::format("loss {:.4f}", losses.front())},
                            {1, sparkline(losses, 2 * kSpark), kCyan},
                            {0, fmt::format("{:.4f}", losses.back())}};
  if (scores_.size() > 1) {
    const auto text = [&](double score) {
      return accuracies_ ? percent(score) : fmt::format("{:.4f}", score);
    };
    pieces.push_back({2, fmt::format("validation {} {}", accuracies_ ? "accuracy" : "loss",
                                     text(scores_.front()))});
    pieces.push_back({3, sparkline(scores_, 2 * kSpark), kGreen});
    pieces.push_back({2, text(scores_.back())});
  }
  print_message("{}\n", line_of(pieces, terminal_columns() - 1, colour_));
}

}  // namespace rotrnn::cli
