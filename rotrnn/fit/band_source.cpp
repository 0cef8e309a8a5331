#include "rotrnn/fit/band_source.h"

#include <algorithm>
#include <cmath>

#include "rotrnn/base/arena.h"
#include "rotrnn/fit/sample.h"
#include "rotrnn/kernels/frontend/rotations.h"

namespace rotrnn::fit {
namespace {

// Sequences that mean and deviation are learned on.
constexpr size_t kBandSequences = 2048;

/// A front end with the memory of its numbers.
struct Rotations {
  kernels::Arena memory;
  std::vector<float> theta, gamma_log, mean, deviation;
  std::unique_ptr<kernels::RotationBank> bank;
};

std::shared_ptr<const Rotations> make(const FrontendOptions& o, size_t channels,
                                      const std::vector<float>& mean,
                                      const std::vector<float>& deviation) {
  auto out = std::make_shared<Rotations>();
  const FrontendRotations r = frontend_rotations(o);
  out->theta.assign(r.theta.begin(), r.theta.end());
  out->gamma_log.assign(r.gamma_log.begin(), r.gamma_log.end());
  out->mean = mean;
  out->deviation = deviation;
  kernels::RotationParameters p;
  p.channels = channels;
  p.bands = static_cast<size_t>(o.bands);
  p.hop = static_cast<size_t>(o.hop);
  p.theta = out->theta.data();
  p.gamma_log = out->gamma_log.data();
  p.mean = mean.empty() ? nullptr : out->mean.data();
  p.deviation = deviation.empty() ? nullptr : out->deviation.data();
  out->bank = std::make_unique<kernels::RotationBank>(p, out->memory);
  return out;
}

Source tokens_of(const Source& samples, const FrontendOptions& o,
                 std::shared_ptr<const Rotations> rotations) {
  Source out;
  out.count = samples.count;
  out.channels = rotations->bank->outputs();
  out.length = [samples, o](size_t i) {
    return static_cast<size_t>(frontend_tokens(o, static_cast<int64_t>(samples.length(i))));
  };
  out.read = [samples, o, rotations](size_t i, float* to) {
    const auto rows = static_cast<int64_t>(samples.length(i));
    std::vector<float> x(static_cast<size_t>(rows) * samples.channels);
    samples.read(i, x.data());
    const int64_t offsets[] = {0, rows}, tokens[] = {0, frontend_tokens(o, rows)};
    kernels::rotations_forward(*rotations->bank, {offsets, 1}, tokens, x.data(), to, nullptr, 1);
  };
  return out;
}

}  // namespace

Bands band_source(const Source& samples, const FrontendOptions& options, uint64_t seed,
                  int threads) {
  const Source raw = tokens_of(samples, options, make(options, samples.channels, {}, {}));
  std::vector<size_t> chosen = random_order(raw.count, kBandSequences, seed);
  std::sort(chosen.begin(), chosen.end());
  const size_t C = raw.channels;
  std::vector<double> first, sum(C, 0.0), square(C, 0.0);
  double count = 0;
  for_blocks(raw, chosen, threads, [&](std::span<const size_t>, const Block& block) {
    if (first.empty()) {
      first.assign(block.values.begin(), block.values.begin() + static_cast<ptrdiff_t>(C));
    }
    for (size_t at = 0; at < block.values.size(); at += C, ++count) {
      for (size_t c = 0; c < C; ++c) {
        const double x = static_cast<double>(block.values[at + c]) - first[c];
        sum[c] += x, square[c] += x * x;
      }
    }
  });
  Bands out;
  for (size_t c = 0; c < C; ++c) {
    const double mean = sum[c] / count, variance = square[c] / count - mean * mean;
    out.mean.push_back(static_cast<float>(first[c] + mean));
    out.deviation.push_back(variance > 1e-12 ? static_cast<float>(std::sqrt(variance)) : 1.0f);
  }
  out.source = band_source(samples, options, out);
  return out;
}

Source band_source(const Source& samples, const FrontendOptions& options, const Bands& learned) {
  return tokens_of(samples, options,
                   make(options, samples.channels, learned.mean, learned.deviation));
}

}  // namespace rotrnn::fit
