#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>

#include "rotrnn/cli/bench/bench.h"
#include "rotrnn/cli/bench/read_bandwidth.h"
#include "rotrnn/cli/output/json_line.h"
#include "rotrnn/cli/output/text.h"
#include "rotrnn/runtime/stream.h"

namespace rotrnn::cli {
namespace {

using Clock = std::chrono::steady_clock;
using nlohmann::ordered_json;
using runtime::Model;
using runtime::ModelInfo;
using runtime::Stream;

struct BenchStreamOptions {
  std::string model;
  int64_t samples = 20000, streams = 1000;
  bool json = false;
};

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

double quantile(std::vector<double>& times, double share) {
  const auto at = static_cast<size_t>(share * static_cast<double>(times.size() - 1));
  std::nth_element(times.begin(), times.begin() + static_cast<ptrdiff_t>(at), times.end());
  return times[at];
}

struct Percentiles {
  double p50 = 0, p99 = 0, max = 0;  // seconds
};

Percentiles percentiles(std::vector<double> times) {
  return {quantile(times, 0.5), quantile(times, 0.99),
          *std::max_element(times.begin(), times.end())};
}

// Noise in the form that the model takes.
class Noise {
 public:
  Noise(const ModelInfo& info, int64_t steps) : info_(info) {
    std::mt19937 engine(1);
    if (info.tokens) {
      std::uniform_int_distribution<int32_t> token(0, static_cast<int32_t>(info.inputs - 1));
      for (int64_t i = 0; i < steps; ++i) tokens_.push_back(token(engine));
    } else {
      std::normal_distribution<float> value(0, 0.1f);
      for (int64_t i = 0; i < steps * info.inputs; ++i) values_.push_back(value(engine));
    }
  }

  void push(Stream& stream, int64_t at, int64_t steps) const {
    const auto begin = static_cast<size_t>(at), count = static_cast<size_t>(steps);
    if (info_.tokens) {
      stream.push_tokens(std::span(tokens_).subspan(begin, count));
    } else {
      const auto C = static_cast<size_t>(info_.inputs);
      stream.push(std::span(values_).subspan(begin * C, count * C));
    }
  }

  std::span<const float> values(int64_t steps) const {
    return std::span(values_).first(static_cast<size_t>(steps * info_.inputs));
  }

 private:
  const ModelInfo& info_;
  std::vector<float> values_;
  std::vector<int32_t> tokens_;
};

struct Result {
  Percentiles push, answered;                    // of one sample; with logits() after it
  double chunk1 = 0, chunk16 = 0, chunk256 = 0;  // steps per second
  size_t memory = 0, state = 0;                  // bytes of a stream
  double load = 0;                               // seconds
  double bytes = 0, bandwidth = 0;               // of the weights
  double one_by_one = 0, together = 0;  // steps per second of many streams; 0: not measured
  double bound() const { return bytes / bandwidth; }
};

double median_load(const std::string& file) {
  std::vector<double> times;
  for (int i = 0; i < 7; ++i) {
    const auto begin = Clock::now();
    const auto model = Model::load(file);
    times.push_back(seconds_since(begin));
  }
  return quantile(times, 0.5);
}

// A model with a mean for every step goes no further than those.
int64_t most_steps(const ModelInfo& info, int64_t wanted) {
  return info.max_length > 0 ? std::min(info.max_length, wanted) : wanted;
}

Percentiles latency(const std::shared_ptr<const Model>& model, const Noise& noise, int64_t samples,
                    int64_t most, bool answered) {
  Stream stream(model, 1);
  std::vector<double> times;
  times.reserve(static_cast<size_t>(samples));
  for (int64_t i = -samples / 10; i < samples; ++i) {  // the first ones warm up
    const int64_t at = (i + samples) % most;
    if (at == 0) stream.reset();
    const auto begin = Clock::now();
    noise.push(stream, at, 1);
    if (answered) stream.logits();
    const double seconds = seconds_since(begin);
    if (i >= 0) times.push_back(seconds);
  }
  return percentiles(std::move(times));
}

// The fastest of five trials: other work of the machine only slows them down.
double chunk_rate(const std::shared_ptr<const Model>& model, const Noise& noise, int64_t samples,
                  int64_t most, int64_t chunk) {
  double best = 0;
  for (int trial = 0; trial < 5; ++trial) {
    Stream stream(model);
    const auto begin = Clock::now();
    int64_t done = 0;
    while (done < samples) {
      const int64_t at = done % most, steps = std::min(chunk, most - at);
      if (at == 0) stream.reset();
      noise.push(stream, at, steps);
      done += steps;
    }
    best = std::max(best, static_cast<double>(done) / seconds_since(begin));
  }
  return best;
}

void measure_many(const std::shared_ptr<const Model>& model, const Noise& noise, int64_t count,
                  Result& r) {
  std::vector<Stream> streams;
  std::vector<Stream*> pointers;
  for (int64_t i = 0; i < count; ++i) streams.emplace_back(model);
  for (Stream& stream : streams) pointers.push_back(&stream);
  for (int trial = 0; trial < 5; ++trial) {
    auto begin = Clock::now();
    for (size_t i = 0; i < streams.size(); ++i) noise.push(streams[i], static_cast<int64_t>(i), 1);
    r.one_by_one = std::max(r.one_by_one, static_cast<double>(count) / seconds_since(begin));
    if (model->info().tokens) continue;
    begin = Clock::now();
    Stream::push_each(pointers, noise.values(count));
    r.together = std::max(r.together, static_cast<double>(count) / seconds_since(begin));
  }
}

Result measure(const BenchStreamOptions& o) {
  Result r;
  r.load = median_load(o.model);
  const auto model = Model::load(o.model);
  const ModelInfo& info = model->info();
  const int64_t most = most_steps(info, o.samples);
  const Noise noise(info, std::max(o.samples, o.streams));
  Stream stream(model, 1);
  r.memory = stream.memory();
  r.state = stream.state_size();
  r.push = latency(model, noise, o.samples, most, false);
  r.answered = latency(model, noise, o.samples, most, true);
  r.chunk1 = chunk_rate(model, noise, o.samples, most, 1);
  r.chunk16 = chunk_rate(model, noise, o.samples, most, 16);
  r.chunk256 = chunk_rate(model, noise, o.samples, most, 256);
  measure_many(model, noise, o.streams, r);
  // All weights are read for a step, but of an embedding one row.
  const int64_t embedding = info.tokens ? (info.inputs - 1) * info.width : 0;
  r.bytes = static_cast<double>(info.parameters - embedding) * sizeof(float);
  r.bandwidth = read_bandwidth(static_cast<size_t>(r.bytes));
  return r;
}

void print_bench_stream_text(const BenchStreamOptions& o, const Result& r) {
  const auto times = [](const Percentiles& p) {
    return fmt::format("p50 {:.2f}, p99 {:.2f}, max {:.1f} µs", 1e6 * p.p50, 1e6 * p.p99,
                       1e6 * p.max);
  };
  const auto rate = [](double x) { return grouped(static_cast<int64_t>(x)); };
  fmt::print("one sample, one thread   {}\n", times(r.push));
  fmt::print("and its logits           {}\n", times(r.answered));
  fmt::print("weights                  {}, read at {:.1f} GB/s: {:.2f} µs, {} of p50\n",
             bytes(r.bytes), 1e-9 * r.bandwidth, 1e6 * r.bound(), percent(r.bound() / r.push.p50));
  fmt::print("chunks of 1, 16, 256     {}, {}, {} steps/s\n", rate(r.chunk1), rate(r.chunk16),
             rate(r.chunk256));
  fmt::print("{} streams            one by one {} steps/s", grouped(o.streams), rate(r.one_by_one));
  if (r.together > 0) fmt::print(", together {}", rate(r.together));
  fmt::print("\nmemory of a stream       {}, {} of it state; the model is loaded in {:.2f} ms\n",
             bytes(static_cast<double>(r.memory)), bytes(static_cast<double>(r.state)),
             1e3 * r.load);
}

void print_bench_stream_json(const BenchStreamOptions& o, const Result& r) {
  const auto times = [](const Percentiles& p) {
    return ordered_json{{"p50", 1e6 * p.p50}, {"p99", 1e6 * p.p99}, {"max", 1e6 * p.max}};
  };
  ordered_json out{{"model", o.model},
                   {"samples", o.samples},
                   {"push_us", times(r.push)},
                   {"push_and_logits_us", times(r.answered)},
                   {"steps_per_second_by_1", r.chunk1},
                   {"steps_per_second_by_16", r.chunk16},
                   {"steps_per_second_by_256", r.chunk256},
                   {"streams", o.streams},
                   {"streams_one_by_one_steps_per_second", r.one_by_one},
                   {"weight_bytes", r.bytes},
                   {"read_bytes_per_second", r.bandwidth},
                   {"bound_us", 1e6 * r.bound()},
                   {"fraction_of_bound", r.bound() / r.push.p50},
                   {"stream_bytes", r.memory},
                   {"state_bytes", r.state},
                   {"load_ms", 1e3 * r.load}};
  if (r.together > 0) out["streams_together_steps_per_second"] = r.together;
  print_json_line(out);
}

int run_bench_stream(const BenchStreamOptions& o) {
  const Result r = measure(o);
  o.json ? print_bench_stream_json(o, r) : print_bench_stream_text(o, r);
  return 0;
}

}  // namespace

void add_bench_stream(CLI::App& bench, Action& action) {
  auto options = std::make_shared<BenchStreamOptions>();
  auto* command =
      bench.add_subcommand("stream", "An exported model, sample by sample in one thread, on noise");
  command->add_option("model", options->model, "model file, as rotrnn export writes it")
      ->required();
  command->add_option("--samples", options->samples, "of each measurement")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{100}, int64_t{1} << 30));
  command->add_option("--streams", options->streams, "streams at once")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 20));
  command->add_flag("--json", options->json, "one line of JSON");
  command->callback(
      [options, &action] { action = [options] { return run_bench_stream(*options); }; });
}

}  // namespace rotrnn::cli
