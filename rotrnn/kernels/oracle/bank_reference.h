#pragma once

#include <algorithm>
#include <complex>
#include <vector>

#include "rotrnn/kernels/features/bank.h"

/// The plain twin of the bank: the equations of features/bank.h, one state at a time.
namespace rotrnn::kernels::reference {

/// v of one state over all rows.
template <class T>
std::vector<T> bank_values(const Bank& bank, const BankSequence& x, size_t state) {
  const size_t C = bank.channels, S = bank.states();
  const size_t group = state / kBankStates, lane = state % kBankStates;
  const std::complex<T> lambda(bank.lambda[state], bank.lambda[S + state]);
  std::complex<T> z(0);
  std::vector<T> v;
  for (size_t t = 0; t < x.rows; ++t) {
    z *= lambda;
    for (size_t r = 0; r < bank.taps; ++r) {
      const auto input = static_cast<size_t>(bank.inputs[group * bank.taps + r]);
      T u = x.values[t * C + input % C];
      if (input >= C) u -= x.values[(t > 0 ? t - 1 : 0) * C + input % C];
      const float* w = bank.weights + (group * bank.taps + r) * 2 * kBankStates + lane;
      z += std::complex<T>(w[0], w[kBankStates]) * u;
    }
    v.push_back(z.real());
  }
  return v;
}

/// The features of one sequence. A row counts when v is above the threshold by more than `margin`,
/// which may be negative.
template <class T>
std::vector<T> bank_features(const Bank& bank, const BankSequence& x, T margin = 0) {
  const size_t S = bank.states();
  std::vector<T> out(bank.features());
  for (size_t s = 0; s < S; ++s) {
    const std::vector<T> v = bank_values<T>(bank, x, s);
    for (size_t k = 0; k < kBankThresholds; ++k) {
      const T threshold = bank.thresholds[k * S + s];
      const auto above =
          std::count_if(v.begin(), v.end(), [&](T value) { return value - threshold > margin; });
      out[k * S + s] = static_cast<T>(above) / static_cast<T>(x.rows);
    }
    out[kBankThresholds * S + s] = *std::max_element(v.begin(), v.end());
  }
  return out;
}

/// The same with counts that forget: at every row, shares go to keep·share + (1 - keep)·[v > c],
/// and the maximum to the larger of v and keep·maximum + (1 - keep)·v.
template <class T>
std::vector<T> bank_forgetting(const Bank& bank, const BankSequence& x, T keep) {
  const size_t S = bank.states();
  std::vector<T> out(bank.features());
  for (size_t s = 0; s < S; ++s) {
    const std::vector<T> v = bank_values<T>(bank, x, s);
    T most = v[0], weight = 0, share[kBankThresholds] = {};
    for (const T value : v) {
      most = std::max(value, keep * most + (1 - keep) * value);
      weight = keep * weight + (1 - keep);
      for (size_t k = 0; k < kBankThresholds; ++k) {
        const bool above = value > static_cast<T>(bank.thresholds[k * S + s]);
        share[k] = keep * share[k] + (above ? 1 - keep : T(0));
      }
    }
    for (size_t k = 0; k < kBankThresholds; ++k) out[k * S + s] = share[k] / weight;
    out[kBankThresholds * S + s] = most;
  }
  return out;
}

}  // namespace rotrnn::kernels::reference
