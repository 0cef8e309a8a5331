#include "rotrnn/training/frontend_statistics.h"

#include <cmath>

#include "rotrnn/network/frontend.h"
#include "rotrnn/training/batch.h"
#include "rotrnn/training/checkpoint/network_checkpoint.h"

namespace rotrnn {
namespace {

constexpr int64_t kSamples = 1 << 21;  // that are turned into tokens at a time

// Sums about the first token, in double and in the order of the examples.
struct Sums {
  std::vector<double> shift, sum, square;
  double count = 0;

  void add(std::span<const float> tokens, size_t channels) {
    if (shift.empty()) {
      shift.assign(tokens.begin(), tokens.begin() + static_cast<ptrdiff_t>(channels));
      sum.assign(channels, 0), square.assign(channels, 0);
    }
    for (size_t at = 0; at < tokens.size(); at += channels) {
      for (size_t k = 0; k < channels; ++k) {
        const double x = static_cast<double>(tokens[at + k]) - shift[k];
        sum[k] += x;
        square[k] += x * x;
      }
      ++count;
    }
  }
};

}  // namespace

void learn_frontend(Network& network, const Examples& examples) {
  const FrontendOptions& options = network.options().frontend;
  if (options.kind != FrontendKind::rotations) return;
  const DataShape& shape = network.shape();
  const auto channels = static_cast<size_t>(frontend_channels(options, shape.inputs));
  Frontend frontend;
  Sums sums;
  for (int64_t next = 0; next < examples.size();) {
    std::vector<int64_t> numbers;
    for (int64_t samples = 0; next < examples.size() && samples < kSamples; ++next) {
      numbers.push_back(next);
      samples += examples.length(next) * shape.inputs;
    }
    const Batch batch = make_batch(examples, shape, numbers, false);
    Frontend::Input input{options, static_cast<size_t>(shape.inputs), network.weights(),
                          batch.input()};
    input.raw = true;
    input.threads = thread_count(network.engine.threads);
    sums.add(frontend.forward(input).values, channels);
  }
  if (sums.count == 0) return;
  const auto mean = network.weights().find("frontend.mean");
  const auto deviation = network.weights().find("frontend.deviation");
  for (size_t k = 0; k < channels; ++k) {
    const double about = sums.sum[k] / sums.count;
    const double variance = sums.square[k] / sums.count - about * about;
    mean[k] = static_cast<float>(sums.shift[k] + about);
    deviation[k] = variance > 1e-12 ? static_cast<float>(std::sqrt(variance)) : 1.0f;
  }
}

}  // namespace rotrnn
