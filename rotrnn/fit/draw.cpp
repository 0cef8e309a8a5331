#include "rotrnn/fit/draw.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "rotrnn/base/random.h"
#include "rotrnn/base/threads.h"
#include "rotrnn/fit/sample.h"

namespace rotrnn::fit {
namespace {

using kernels::FeatureBank;
using kernels::kBankStates;
using kernels::kBankThresholds;

constexpr double kPi = std::numbers::pi;

// What thresholds are chosen from: rows that the bank walks over, and values per state.
constexpr size_t kSampleRows = size_t{1} << 17, kSampleSequences = 4096, kSampleValues = 1024;

enum class Draw : uint64_t { rotation, drive, thresholds, positions };

Random random_for(uint64_t seed, Draw draw, uint64_t index = 0) {
  return {seed, RandomSite::fit, {static_cast<uint64_t>(draw), index}};
}

double log_uniform(Random& random, double low, double high) {
  return low * std::pow(std::max(1.0, high / low), random.uniform());
}

void draw_rotation(FeatureBank& bank, uint64_t seed, size_t state, double L) {
  Random random = random_for(seed, Draw::rotation, state);
  const bool still = random.below(10) == 0;
  const double theta = log_uniform(random, kPi / std::max(L, 1.0), kPi);
  double memory = log_uniform(random, 1.5, L / 2);
  const double least = 3 / theta * (0.3 + 1.2 * random.uniform());
  if (!still) memory = std::min(std::max(memory, least), std::max(L, 1.5));
  bank.theta.push_back(still ? 0.0f : static_cast<float>(theta));
  bank.gamma_log.push_back(static_cast<float>(-std::log(memory)));
}

/// The inputs of the groups: all pairs, or all sets of neighbours, in a random order, one after the
/// other until there are enough; so that none is left out while others come twice.
void draw_inputs(FeatureBank& bank, const BankOptions& o, size_t groups) {
  const size_t width = bank.differences ? 2 * bank.channels : bank.channels;
  std::vector<std::vector<int32_t>> all;
  if (o.neighbours == 0) {
    for (size_t a = 0; a < width; ++a) {
      if (bank.taps == 1) all.push_back({static_cast<int32_t>(a)});
      for (size_t b = 0; b < a && bank.taps == 2; ++b) {
        all.push_back({static_cast<int32_t>(a), static_cast<int32_t>(b)});
      }
    }
  } else {
    for (size_t first = 0; first + bank.taps <= width; ++first) {
      if (first % o.bands + bank.taps > o.bands) continue;  // of two channels
      all.emplace_back();
      for (size_t r = 0; r < bank.taps; ++r) all.back().push_back(static_cast<int32_t>(first + r));
    }
  }
  std::vector<size_t> order;
  for (size_t g = 0; g < groups; ++g) {
    if (g % all.size() == 0) order = random_order(all.size(), all.size(), o.seed + g);
    const auto& chosen = all[order[g % all.size()]];
    bank.inputs.insert(bank.inputs.end(), chosen.begin(), chosen.end());
  }
}

void draw_drive(FeatureBank& bank, uint64_t seed, const std::vector<double>& deviation) {
  const size_t groups = bank.states() / kBankStates;
  bank.drive.resize(groups * bank.taps * 2 * kBankStates);
  for (size_t s = 0; s < bank.states(); ++s) {
    Random random = random_for(seed, Draw::drive, s);
    const double phase = 2 * kPi * random.uniform();
    const double xi = std::sqrt(-std::expm1(-2 * std::exp(static_cast<double>(bank.gamma_log[s]))));
    for (size_t r = 0; r < bank.taps; ++r) {
      const size_t at = s / kBankStates * bank.taps + r;
      const double spread = deviation[static_cast<size_t>(bank.inputs[at])];
      const double w = spread > 0 ? xi * random.normal() / spread : 0;
      float* to = bank.drive.data() + at * 2 * kBankStates + s % kBankStates;
      to[0] = static_cast<float>(w * std::cos(phase));
      to[kBankStates] = static_cast<float>(w * std::sin(phase));
    }
  }
}

/// Standard deviations of the inputs: channels, then their differences.
std::vector<double> input_deviations(const Block& block, size_t C, bool differences) {
  const size_t width = differences ? 2 * C : C;
  std::vector<double> sum(width, 0.0), square(width, 0.0), out(width);
  for (size_t i = 0; i < block.sequences(); ++i) {
    const kernels::BankSequence s = block.sequence(i, C);
    for (size_t t = 0; t < s.rows; ++t) {
      for (size_t c = 0; c < C; ++c) {
        const double x = s.values[t * C + c];
        sum[c] += x, square[c] += x * x;
        if (!differences || t == 0) continue;
        const double d = x - static_cast<double>(s.values[(t - 1) * C + c]);
        sum[C + c] += d, square[C + c] += d * d;
      }
    }
  }
  const auto n = static_cast<double>(block.offsets.back());
  for (size_t c = 0; c < width; ++c) {
    const double mean = sum[c] / n, variance = square[c] / n - mean * mean;
    out[c] = variance > 1e-12 * std::max(1e-12, mean * mean) ? std::sqrt(variance) : 0;
  }
  return out;
}

/// Rows of the block, evenly spread with a random offset each: of each sequence, ascending.
std::vector<std::vector<size_t>> sample_positions(const Block& block, Random random) {
  const size_t rows = block.offsets.back(), count = std::min(rows, kSampleValues);
  std::vector<std::vector<size_t>> out(block.sequences());
  size_t sequence = 0, last = rows;
  for (size_t j = 0; j < count; ++j) {
    const double at = (static_cast<double>(j) + random.uniform()) / static_cast<double>(count);
    const size_t row =
        count == rows ? j : std::min(rows - 1, static_cast<size_t>(at * static_cast<double>(rows)));
    if (row == last) continue;
    last = row;
    while (row >= block.offsets[sequence + 1]) ++sequence;
    out[sequence].push_back(row - block.offsets[sequence]);
  }
  return out;
}

/// The quantile of values, half way between two of them, so that no value is at the threshold and a
/// rounding changes no count. Reorders them.
float quantile(std::vector<float>& values, double q) {
  const auto n = static_cast<double>(values.size());
  const auto at = values.begin() + static_cast<ptrdiff_t>(std::min(q * n, n - 1));
  std::nth_element(values.begin(), at, values.end());
  if (at + 1 == values.end()) return *at;
  return *at + 0.5f * (*std::min_element(at + 1, values.end()) - *at);
}

void choose_thresholds(FeatureBank& bank, uint64_t seed, const Block& block, int threads) {
  const size_t S = bank.states();
  bank.thresholds.assign(kBankThresholds * S, 0.0f);
  const auto positions = sample_positions(block, random_for(seed, Draw::positions));
  std::vector<std::vector<float>> samples(S);
  const kernels::Bank view = bank.view();
  for (size_t i = 0; i < block.sequences(); ++i) {
    kernels::bank_samples(view, block.sequence(i, bank.channels), positions[i], samples, threads);
  }
  kernels::parallel_for(threads, [&](int t) {
    for (auto s = static_cast<size_t>(t); s < S; s += static_cast<size_t>(threads)) {
      Random random = random_for(seed, Draw::thresholds, s);
      for (size_t k = 0; k < kBankThresholds; ++k) {
        bank.thresholds[k * S + s] = quantile(samples[s], 0.03 + 0.94 * random.uniform());
      }
    }
  });
}

/// Random sequences, up to so many rows: the last one is cut.
Block sample_block(const Source& source, uint64_t seed, int threads) {
  std::vector<size_t> chosen;
  size_t rows = 0;
  for (const size_t i : random_order(source.count, kSampleSequences, seed)) {
    if (rows >= kSampleRows) break;
    chosen.push_back(i);
    rows += source.length(i);
  }
  std::sort(chosen.begin(), chosen.end());
  Block block = read_block(source, chosen, threads);
  for (size_t& at : block.offsets) at = std::min(at, std::max(kSampleRows, block.offsets[1]));
  while (block.sequences() > 1 && block.offsets.end()[-2] == block.offsets.back()) {
    block.offsets.pop_back();
  }
  return block;
}

double median_length(const Source& source, uint64_t seed) {
  std::vector<size_t> lengths;
  for (const size_t i : random_order(source.count, kSampleSequences, seed)) {
    lengths.push_back(source.length(i));
  }
  const auto middle = lengths.begin() + static_cast<ptrdiff_t>(lengths.size() / 2);
  std::nth_element(lengths.begin(), middle, lengths.end());
  return static_cast<double>(*middle);
}

}  // namespace

kernels::FeatureBank draw_bank(const BankOptions& options, const Source& source, int threads) {
  kernels::FeatureBank bank;
  bank.channels = source.channels;
  bank.differences = options.differences;
  const size_t width = bank.differences ? 2 * bank.channels : bank.channels;
  bank.taps = options.neighbours > 0 ? std::min(options.neighbours, options.bands)
                                     : std::min<size_t>(2, width);
  const double L = median_length(source, options.seed);
  const size_t groups = (std::max<size_t>(options.states, 1) + kBankStates - 1) / kBankStates;
  draw_inputs(bank, options, groups);
  for (size_t s = 0; s < groups * kBankStates; ++s) draw_rotation(bank, options.seed, s, L);
  const Block sample = sample_block(source, options.seed, threads);
  draw_drive(bank, options.seed, input_deviations(sample, bank.channels, bank.differences));
  bank.prepare();
  choose_thresholds(bank, options.seed, sample, threads);
  return bank;
}

}  // namespace rotrnn::fit
