#include "rotrnn/runtime/stream.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <stdexcept>

#include "rotrnn/base/message.h"
#include "rotrnn/cli/command.h"
#include "rotrnn/cli/output/interrupt.h"
#include "rotrnn/cli/output/json_line.h"
#include "rotrnn/cli/output/text.h"
#include "rotrnn/cli/stream/latency.h"
#include "rotrnn/cli/stream/stream_input.h"

namespace rotrnn::cli {
namespace {

using Clock = std::chrono::steady_clock;
using nlohmann::ordered_json;
using runtime::ModelInfo;

struct StreamOptions {
  std::string model, file = "-", format = "auto";
  int64_t chunk = 256, every = 0, segment = 0, top = 1, limit = 0;
  double memory = 0;
  bool json = false, all = false;
};

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// The bytes of a file or of standard input, as they arrive.
class Source {
 public:
  explicit Source(const std::string& file) : name_(file == "-" ? "standard input" : file) {
    if (file == "-") return;
    file_ = open(file.c_str(), O_RDONLY | O_CLOEXEC);
    if (file_ < 0) throw std::runtime_error(fmt::format("{}: {}", file, std::strerror(errno)));
  }
  ~Source() {
    if (file_ > 0) close(file_);
  }
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  const std::string& name() const { return name_; }

  // What has come, at least a byte; empty at the end, and when the user has stopped the program.
  std::string_view next() {
    for (;;) {
      if (interrupted()) return {};
      // A signal may come just before this waits: so it looks again from time to time. One that
      // comes while it waits ends poll() with an error; read() would go on waiting.
      pollfd wait{file_, POLLIN, 0};
      const int ready = poll(&wait, 1, 200);
      if (ready == 0 || (ready < 0 && errno == EINTR)) continue;
      const ssize_t count = read(file_, buffer_.data(), buffer_.size());
      if (count >= 0) return {buffer_.data(), static_cast<size_t>(count)};
      if (errno != EINTR && errno != EAGAIN) {
        throw std::runtime_error(fmt::format("{}: {}", name_, std::strerror(errno)));
      }
    }
  }

 private:
  std::string name_;
  int file_ = STDIN_FILENO;
  std::vector<char> buffer_ = std::vector<char>(1 << 16);
};

// Prints the prediction: when its class changes, every so many steps, and at the end.
class Reporter {
 public:
  Reporter(const StreamOptions& o, const runtime::Model& model)
      : o_(o), model_(model), info_(model.info()), answer_(static_cast<size_t>(info_.outputs)) {}

  // The logits after `step` steps of the input.
  void row(int64_t step, std::span<const float> logits) {
    if (o_.every > 0) {
      // Tokens of a front end end at steps of their own: then the first at or after so many.
      const bool due = info_.hop == 1 ? step % o_.every == 0 : step / o_.every != seen_ / o_.every;
      if (due) print(step, logits, false);
      seen_ = step;
    } else if (info_.classifies) {
      const auto top = std::max_element(logits.begin(), logits.end()) - logits.begin();
      if (top != last_) print(step, logits, false);
      last_ = top;
    }
  }

  void segment(int64_t step, std::span<const float> logits) { print(step, logits, false); }
  void end(int64_t step, std::span<const float> logits) { print(step, logits, true); }

 private:
  void print(int64_t step, std::span<const float> logits, bool final) {
    std::copy(logits.begin(), logits.end(), answer_.begin());
    model_.answer(answer_);
    o_.json ? print_json(step, final) : print_text(step, final);
  }

  // Numbers of the classes, the likeliest first.
  std::vector<size_t> ranked() const {
    std::vector<size_t> order(answer_.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return answer_[a] > answer_[b]; });
    order.resize(o_.all ? order.size() : std::min(order.size(), static_cast<size_t>(o_.top)));
    return order;
  }

  void print_json(int64_t step, bool final) const {
    ordered_json out;
    if (final) out["final"] = true;
    out["step"] = step;
    if (info_.rate > 0)
      out["seconds"] = static_cast<double>(step) / static_cast<double>(info_.rate);
    if (info_.classifies) {
      const auto order = ranked();
      out["label"] = info_.classes[order[0]];
      out["probability"] = answer_[order[0]];
      if (order.size() > 1) {
        for (const size_t k : order) out["probabilities"][info_.classes[k]] = answer_[k];
      }
    } else {
      out["values"] = answer_;
    }
    print_json_line(out);
  }

  void print_text(int64_t step, bool final) const {
    std::string line = final ? "end " : "";
    line +=
        info_.rate > 0
            ? fmt::format("{:.3f} s", static_cast<double>(step) / static_cast<double>(info_.rate))
            : fmt::format("step {}", step);
    if (info_.classifies) {
      for (const size_t k : ranked()) {
        line += fmt::format("\t{}\t{:.3f}", info_.classes[k], answer_[k]);
      }
    } else if (info_.horizon > 0) {
      const size_t channels = answer_.size() / static_cast<size_t>(info_.horizon);
      for (size_t h = 0; h * channels < answer_.size(); ++h) {
        line += fmt::format("\t+{}:", h + 1);
        for (size_t c = 0; c < channels; ++c)
          line += fmt::format(" {:.6g}", answer_[h * channels + c]);
      }
    } else {
      for (size_t k = 0; k < answer_.size(); ++k) {
        const bool named = info_.values.size() == answer_.size();
        line += fmt::format("\t{}{:.6g}", named ? info_.values[k] + " " : "", answer_[k]);
      }
    }
    fmt::print("{}\n", line);
  }

  const StreamOptions& o_;
  const runtime::Model& model_;
  const ModelInfo& info_;
  std::vector<float> answer_;
  ptrdiff_t last_ = -1;
  int64_t seen_ = 0;  // steps at the last row
};

// The stream with what is measured of it.
class Run {
 public:
  Run(const StreamOptions& o, std::shared_ptr<const runtime::Model> model)
      : o_(o),
        info_(model->info()),
        stream_(model),
        reporter_(o, *model),
        each_(static_cast<size_t>(o.chunk * info_.outputs)) {
    if (o.memory > 0) stream_.set_memory(o.memory);
  }

  bool full() const { return o_.limit > 0 && received_ >= o_.limit; }

  // Pushes what has come, in parts of `chunk` steps at most.
  void take(StreamInput& in, const std::string& name) {
    try {
      if (info_.text && !in.text.empty()) {
        push_parts(in.text.size(), 1, [&](size_t at, size_t n) {
          return stream_.push_text(std::string_view(in.text).substr(at, n), each_);
        });
      }
      push_parts(in.tokens.size(), 1, [&](size_t at, size_t n) {
        return stream_.push_tokens(std::span(in.tokens).subspan(at, n), each_);
      });
      push_parts(in.values.size(), static_cast<size_t>(info_.tokens ? 1 : info_.inputs),
                 [&](size_t at, size_t n) {
                   return stream_.push(std::span(in.values).subspan(at, n), each_);
                 });
    } catch (const std::invalid_argument& error) {
      throw std::runtime_error(fmt::format("{}: after step {}: {}", name, received_, error.what()));
    }
    in.text.clear();
    in.tokens.clear();
    in.values.clear();
    std::fflush(stdout);
  }

  void end(const std::string& name) {
    try {
      stream_.end();
    } catch (const std::invalid_argument& error) {  // inside a character, where a user may stop
      if (!interrupted()) throw std::runtime_error(fmt::format("{}: {}", name, error.what()));
    }
    if (stream_.steps() == 0) {
      if (interrupted() || (o_.segment > 0 && received_ > 0)) return;
      throw std::runtime_error(fmt::format("{}: ended before a step had come", name));
    }
    reporter_.end(received_, stream_.logits());
  }

  void summarise(double load) const {
    const double rate = pushes_.total() > 0 ? static_cast<double>(received_) / pushes_.total() : 0;
    if (o_.json) {
      const auto times = [](const Latency& l) {
        return ordered_json{{"p50", 1e6 * l.quantile(0.5)},
                            {"p99", 1e6 * l.quantile(0.99)},
                            {"max", 1e6 * l.largest()}};
      };
      const ordered_json out{{"summary", true},
                             {"steps", received_},
                             {"pushes", pushes_.count()},
                             {"push_us", times(pushes_)},
                             {"step_us", times(steps_)},
                             {"steps_per_second", rate},
                             {"busy_seconds", pushes_.total()},
                             {"load_ms", 1e3 * load},
                             {"stream_bytes", stream_.memory()}};
      print_json_line(out);
      return;
    }
    const auto times = [](const Latency& l) {
      return fmt::format("p50 {:.1f}, p99 {:.1f}, max {:.1f} µs", 1e6 * l.quantile(0.5),
                         1e6 * l.quantile(0.99), 1e6 * l.largest());
    };
    print_message("{} steps in {} pushes, {} steps/s; a push: {}; a step: {}\n", grouped(received_),
                  grouped(pushes_.count()), grouped(static_cast<int64_t>(rate)), times(pushes_),
                  times(steps_));
    if (info_.rate > 0) {
      print_message("{:.0f} × real time; ", rate / static_cast<double>(info_.rate));
    }
    print_message("{} for this stream; the model was loaded in {:.1f} ms\n",
                  bytes(static_cast<double>(stream_.memory())), 1e3 * load);
  }

 private:
  // push(at, n) takes n of `size` numbers from `at` on, of `width` a step.
  template <typename Push>
  void push_parts(size_t size, size_t width, const Push& push) {
    for (size_t at = 0; at < size && !full();) {
      auto steps = std::min(static_cast<size_t>(o_.chunk), (size - at) / width);
      if (o_.limit > 0) steps = std::min(steps, static_cast<size_t>(o_.limit - received_));
      if (o_.segment > 0) steps = std::min(steps, static_cast<size_t>(segment_end() - received_));
      const int64_t before = stream_.steps();
      const auto begin = Clock::now();
      const int64_t made = push(at, steps * width);
      const double seconds = seconds_since(begin);
      pushes_.add(seconds);
      if (made > 0) steps_.add(seconds / static_cast<double>(made), made);
      const auto K = static_cast<size_t>(info_.outputs);
      for (int64_t r = 0; r < made && (o_.segment == 0 || o_.every > 0); ++r) {
        const int64_t kept = info_.window + (before + r) * info_.hop;
        const int64_t step = segment_begin_ + (kept - 1) * info_.keep_every + 1;
        reporter_.row(step, std::span(each_).subspan(static_cast<size_t>(r) * K, K));
      }
      // In text, several bytes may be one step, or none.
      received_ += info_.text ? made : static_cast<int64_t>(steps);
      at += steps * width;
      if (o_.segment > 0 && received_ == segment_end()) {
        stream_.end();
        reporter_.segment(received_, stream_.logits());
        stream_.reset();
        segment_begin_ = received_;
      }
    }
  }

  int64_t segment_end() const { return segment_begin_ + o_.segment; }

  const StreamOptions& o_;
  const ModelInfo& info_;
  runtime::Stream stream_;
  Reporter reporter_;
  std::vector<float> each_;
  int64_t received_ = 0, segment_begin_ = 0;
  Latency pushes_, steps_;
};

std::shared_ptr<const runtime::Model> load(const std::string& file) {
  namespace fs = std::filesystem;
  if (fs::is_directory(file)) {
    const std::string word = shell_word(file);
    throw std::invalid_argument(
        fmt::format("{}: is a run folder, or another; export it first: {} export {} --out "
                    "model.safetensors",
                    file, program(), word));
  }
  return runtime::Model::load(file);
}

int run_stream(const StreamOptions& o) {
  catch_interrupts();
  const auto begin = Clock::now();
  const auto model = load(o.model);
  const double loaded = seconds_since(begin);
  Run run(o, model);
  Source source(o.file);
  const ModelInfo& info = model->info();
  if (o.segment > 0 && info.text) {
    throw std::invalid_argument("--segment is for sound, series and tokens; a text is read whole");
  }
  const std::string& name = source.name();
  StreamDecoder decoder;
  StreamInput input;
  std::string first;  // until the format is known
  if (o.format != "auto") decoder = stream_decoder(o.format, info, name);
  const auto feed = [&](std::string_view bytes, bool ended) {
    if (!decoder.feed) {
      first.append(bytes);
      if (first.size() < kGuessBytes && !ended && !info.tokens) return;
      decoder = stream_decoder(guess_stream_format(first, info, name), info, name);
      decoder.feed(first, input);
    } else {
      decoder.feed(bytes, input);
    }
    run.take(input, name);
  };
  for (std::string_view bytes; !run.full() && !(bytes = source.next()).empty();) feed(bytes, false);
  if (!interrupted() && !run.full()) {
    feed({}, true);
    decoder.end(input);
    run.take(input, name);
  }
  run.end(name);
  std::fflush(stdout);
  run.summarise(loaded);
  return 0;
}

}  // namespace

void add_stream(CLI::App& app, Action& action) {
  auto options = std::make_shared<StreamOptions>();
  auto* command = app.add_subcommand(
      "stream", "Predictions of a model while its input arrives: arecord … | rotrnn stream MODEL");
  command->add_option("model", options->model, "model file, as rotrnn export writes it")
      ->required();
  command->add_option("file", options->file, "file to read; none or -: standard input");
  std::vector<std::string> formats{"auto"};
  formats.insert(formats.end(), stream_formats().begin(), stream_formats().end());
  command
      ->add_option(
          "--format", options->format,
          "auto (default), wav, s16, f32, u8 (raw samples, channels together), csv (one line "
          "per step), bytes (text) or tokens (numbers)")
      ->check(CLI::IsMember(formats));
  const auto count = CLI::Range(int64_t{1}, int64_t{1} << 40);
  command->add_option("--chunk", options->chunk, "most steps that are worked on at once")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 16));
  command
      ->add_option("--every", options->every,
                   "print every so many steps, instead of when the class changes")
      ->check(count);
  command
      ->add_option("--segment", options->segment,
                   "start again after so many steps, and print the prediction of each part: 16000 "
                   "is one answer per second of sound at 16 kHz")
      ->check(count);
  command
      ->add_option("--memory", options->memory,
                   "of a fitted model: forget, so that what is so many steps old counts a third")
      ->check(CLI::Range(1.0, 1e12));
  command->add_option("--top", options->top, "print so many of the likeliest classes")
      ->capture_default_str()
      ->check(count);
  command->add_flag("--all", options->all, "print the probabilities of all classes");
  command->add_option("--limit", options->limit, "stop after so many steps")->check(count);
  command->add_flag("--json", options->json,
                    "one line of JSON per prediction, for the final one, and a summary");
  command->callback([options, &action] { action = [options] { return run_stream(*options); }; });
}

}  // namespace rotrnn::cli
