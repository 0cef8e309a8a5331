#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "rotrnn/kernels/simd/simd.h"

namespace rotrnn::kernels {

/// A bank of fixed decayed rotations, and what is counted of them over a sequence x [L, C]:
///
///     u_t = x_t, or [x_t, x_t - x_{t-1}] with differences; x_0 = x_1
///     z_t = λ ⊙ z_{t-1} + Σ_r w_r u_{t,i(r)},  v_t = Re z_t,  z_0 = 0      r: the taps of the
///     state features: the share of t with v_t > c_k, k = 1 … K, and max_t v_t
///
/// States come in groups of kBankStates that read the same inputs. Features are planes
/// [K + 1, states]: the shares by threshold, then the maxima.
struct Bank {
  size_t channels = 0;  // C
  bool differences = false;
  size_t groups = 0, taps = 0;        // taps: 1 to kBankTaps
  const int32_t* inputs = nullptr;    // [groups, taps]: columns of u
  const float* weights = nullptr;     // [groups, taps, 2 (re, im), kBankStates]
  const float* lambda = nullptr;      // [2, states]
  const float* thresholds = nullptr;  // [kBankThresholds, states]

  size_t states() const { return groups * kBankStates; }
  size_t features() const { return (kBankThresholds + 1) * states(); }
  size_t width() const { return differences ? 2 * channels : channels; }  // of u
};

/// Rows of one sequence.
struct BankSequence {
  const float* values = nullptr;
  size_t rows = 0;
};

/// features [sequences, features()], of sequences with at least one row. The same bits for any
/// number of threads.
void bank_features(const Bank& bank, std::span<const BankSequence> sequences, float* features,
                   int threads);

/// v of the rows that `chosen` names, ascending, for one sequence and group after group: added to
/// the end of samples[state].
void bank_samples(const Bank& bank, const BankSequence& sequence, std::span<const size_t> chosen,
                  std::vector<std::vector<float>>& samples, int threads);

/// A bank that reads its sequence in portions. Nothing is allocated after construction.
class BankState {
 public:
  explicit BankState(const Bank& bank);

  /// Back to before the first row.
  void reset();

  /// Counts forget: a row that is k rows old counts keep^k. 1 (as at first): they do not. To be
  /// chosen before the first row.
  void set_keep(double keep) { keep_ = keep; }

  void push(const Bank& bank, const float* values, size_t rows);

  /// Of the rows so far, at least one: the bits of bank_features for the same rows.
  void features(float* out) const;

  int64_t steps() const { return steps_; }

  /// All of it as bytes, and back: another one of the same bank goes on to the bit. The choice of
  /// set_keep is not in it.
  size_t size() const;
  void save(std::byte* out) const;
  void restore(const std::byte* in);

 private:
  /// Calls f(data, bytes) for each part.
  template <class Self, class F>
  static void each_part(Self& self, const F& f) {
    f(&self.weight_, sizeof self.weight_);
    f(&self.steps_, sizeof self.steps_);
    f(&self.counted_, sizeof self.counted_);
    for (auto* floats : {&self.z_, &self.most_, &self.shares_, &self.last_}) {
      f(floats->data(), floats->size() * sizeof(float));
    }
    f(self.counts_.data(), self.counts_.size() * sizeof(int32_t));
  }

  size_t states_, channels_;
  double keep_ = 1, weight_ = 0;  // weight: Σ keep^k over the rows so far
  int64_t steps_ = 0;             // rows so far
  int64_t counted_ = 0;           // rows in the counts, which are halved before they overflow
  std::vector<float> z_, most_, shares_, last_;
  std::vector<int32_t> counts_;
  std::vector<float> scratch_;
};

}  // namespace rotrnn::kernels
