#include "rotrnn/kernels/features/bank.h"

#include <algorithm>
#include <atomic>
#include <cfloat>
#include <cmath>
#include <cstring>

#include "rotrnn/base/threads.h"

namespace rotrnn::kernels {
namespace {

// Rows that pass through all groups before the next: with differences of a few channels they stay
// in L1, and the state of a group is loaded and stored once for so many steps.
constexpr size_t kRows = 256;

// Groups of one unit of work: so many that the rows' differences cost little, and so few that
// threads share one long sequence.
constexpr size_t kUnitGroups = 16;

/// The rows of u from values: as they are, or in `scratch`, with differences. `last` is the row
/// before the first one, null at the begin of a sequence.
const float* input_rows(const Bank& bank, const float* values, size_t rows, const float* last,
                        std::vector<float>& scratch) {
  if (!bank.differences) return values;
  const size_t C = bank.channels;
  scratch.resize(kRows * 2 * C);  // once
  for (size_t t = 0; t < rows; ++t) {
    const float* x = values + t * C;
    const float* before = t > 0 ? x - C : last != nullptr ? last : x;
    float* u = scratch.data() + t * 2 * C;
    for (size_t c = 0; c < C; ++c) {
      u[c] = x[c];
      u[C + c] = x[c] - before[c];
    }
  }
  return scratch.data();
}

BankTile tile_of(const Bank& bank, size_t first, size_t last) {
  return {.rows = 0,
          .ld = bank.width(),
          .u = nullptr,
          .first = first,
          .last = last,
          .states = bank.states(),
          .taps = bank.taps,
          .inputs = bank.inputs,
          .weights = bank.weights,
          .lambda = bank.lambda,
          .thresholds = bank.thresholds};
}

/// Calls f(tile) for the rows of a sequence, tile after tile.
template <class F>
void for_tiles(const Bank& bank, BankTile tile, const float* values, size_t rows, const float* last,
               std::vector<float>& scratch, const F& f) {
  for (size_t t = 0; t < rows; t += kRows) {
    tile.rows = std::min(kRows, rows - t);
    const float* x = values + t * bank.channels;
    tile.u = input_rows(bank, x, tile.rows, t > 0 ? x - bank.channels : last, scratch);
    f(tile, t);
  }
}

template <class F>
void for_each(int threads, size_t count, const F& f) {
  std::atomic<size_t> next{0};
  const size_t most = std::min<size_t>(static_cast<size_t>(std::max(1, threads)), count);
  parallel_for(static_cast<int>(most), [&](int) {
    std::vector<float> scratch;
    for (size_t i; (i = next++) < count;) f(i, scratch);
  });
}

void write_share(const int32_t* counts, size_t n, int64_t steps, float* out) {
  const float scale = 1.0f / static_cast<float>(steps);
  for (size_t i = 0; i < n; ++i) out[i] = static_cast<float>(counts[i]) * scale;
}

}  // namespace

void bank_features(const Bank& bank, std::span<const BankSequence> sequences, float* features,
                   int threads) {
  const size_t S = bank.states(), units = (bank.groups + kUnitGroups - 1) / kUnitGroups;
  for_each(threads, sequences.size() * units, [&](size_t task, std::vector<float>& scratch) {
    const BankSequence& sequence = sequences[task / units];
    const size_t first = task % units * kUnitGroups;
    const size_t last = std::min(first + kUnitGroups, bank.groups);
    // States of this unit alone, so that they stay in L1: its planes are those of a smaller bank.
    constexpr size_t kStates = kUnitGroups * kBankStates;
    alignas(64) float z[2 * kStates] = {}, most[kStates];
    alignas(64) int32_t counts[kBankThresholds * kStates] = {};
    std::fill_n(most, kStates, -FLT_MAX);
    const BankMemory memory{z, most, counts, nullptr, kStates, first};
    for_tiles(bank, tile_of(bank, first, last), sequence.values, sequence.rows, nullptr, scratch,
              [&](const BankTile& tile, size_t) { table().bank_count(tile, memory); });
    float* out = features + task / units * bank.features() + first * kBankStates;
    const size_t n = (last - first) * kBankStates;
    for (size_t k = 0; k < kBankThresholds; ++k) {
      write_share(counts + k * kStates, n, static_cast<int64_t>(sequence.rows), out + k * S);
    }
    std::copy_n(most, n, out + kBankThresholds * S);
  });
}

void bank_samples(const Bank& bank, const BankSequence& sequence, std::span<const size_t> chosen,
                  std::vector<std::vector<float>>& samples, int threads) {
  const size_t units = (bank.groups + kUnitGroups - 1) / kUnitGroups;
  if (chosen.empty()) return;
  for_each(threads, units, [&](size_t unit, std::vector<float>& scratch) {
    const size_t first = unit * kUnitGroups, last = std::min(first + kUnitGroups, bank.groups);
    constexpr size_t kStates = kUnitGroups * kBankStates;
    const size_t n = (last - first) * kBankStates;
    alignas(64) float z[2 * kStates] = {};
    std::vector<float> v(kRows * kStates);
    size_t next = 0;
    for_tiles(bank, tile_of(bank, first, last), sequence.values, chosen.back() + 1, nullptr,
              scratch, [&](const BankTile& tile, size_t begin) {
                table().bank_values(tile, {z, nullptr, nullptr, nullptr, kStates, first}, v.data());
                for (; next < chosen.size() && chosen[next] < begin + tile.rows; ++next) {
                  const float* row = v.data() + (chosen[next] - begin) * kStates;
                  for (size_t i = 0; i < n; ++i) {
                    samples[first * kBankStates + i].push_back(row[i]);
                  }
                }
              });
  });
}

BankState::BankState(const Bank& bank)
    : states_(bank.states()),
      channels_(bank.channels),
      z_(2 * states_),
      most_(states_),
      shares_(kBankThresholds * states_),
      last_(channels_),
      counts_(kBankThresholds * states_),
      scratch_(bank.differences ? kRows * 2 * channels_ : 0) {
  reset();
}

void BankState::reset() {
  std::fill(z_.begin(), z_.end(), 0.0f);
  std::fill(most_.begin(), most_.end(), -FLT_MAX);
  std::fill(shares_.begin(), shares_.end(), 0.0f);
  std::fill(counts_.begin(), counts_.end(), 0);
  steps_ = counted_ = 0;
  weight_ = 0;
}

void BankState::push(const Bank& bank, const float* values, size_t rows) {
  if (rows == 0) return;
  constexpr int64_t kMost = int64_t{1} << 30;
  const BankMemory memory{z_.data(), most_.data(), counts_.data(), shares_.data(), states_, 0};
  for_tiles(bank, tile_of(bank, 0, bank.groups), values, rows, steps_ > 0 ? last_.data() : nullptr,
            scratch_, [&](const BankTile& tile, size_t) {
              if (keep_ < 1) {
                table().bank_forget(tile, memory, static_cast<float>(keep_));
                weight_ = 1 - (1 - weight_) * std::pow(keep_, static_cast<double>(tile.rows));
                return;
              }
              if (counted_ > kMost) {  // a stream without end: half of everything
                for (int32_t& count : counts_) count /= 2;
                counted_ /= 2;
              }
              table().bank_count(tile, memory);
              counted_ += static_cast<int64_t>(tile.rows);
            });
  steps_ += static_cast<int64_t>(rows);
  std::copy_n(values + (rows - 1) * channels_, channels_, last_.data());
}

size_t BankState::size() const {
  size_t bytes = 0;
  each_part(*this, [&](const auto*, size_t size) { bytes += size; });
  return bytes;
}

void BankState::save(std::byte* out) const {
  each_part(*this, [&](const auto* data, size_t size) {
    std::memcpy(out, data, size);
    out += size;
  });
}

void BankState::restore(const std::byte* in) {
  each_part(*this, [&](auto* data, size_t size) {
    std::memcpy(data, in, size);
    in += size;
  });
}

void BankState::features(float* out) const {
  if (keep_ < 1) {
    const auto scale = static_cast<float>(1 / weight_);
    for (size_t i = 0; i < shares_.size(); ++i) out[i] = shares_[i] * scale;
  } else {
    write_share(counts_.data(), counts_.size(), counted_, out);
  }
  std::copy(most_.begin(), most_.end(), out + shares_.size());
}

}  // namespace rotrnn::kernels
