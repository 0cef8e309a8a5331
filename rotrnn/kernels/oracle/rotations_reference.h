#pragma once

#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "rotrnn/kernels/frontend/rotations.h"
#include "rotrnn/spec/frontend.h"

/// The plain twin of the bank of rotations: the equations of frontend/rotations.h, one band of one
/// channel at a time, with every z kept.
namespace rotrnn::kernels::reference {

/// Parameters and samples, and gradients alike. `mean` and `deviation` are not trained.
template <class T>
struct RotationValues {
  size_t channels = 1, bands = 0, hop = 1;
  std::vector<T> theta, gamma_log;  // [bands]
  std::vector<T> mean, deviation;   // [channels, bands]
  std::vector<T> x;                 // [m, channels]
};

template <class T>
struct RotationTrace {
  std::vector<std::complex<T>> z;  // of the samples of one sequence, channel and band
  std::vector<T> power;            // of its tokens
};

/// The states of one band of one channel of a sequence, and the mean power of its tokens.
template <class T>
RotationTrace<T> rotation_powers(const RotationValues<T>& v, size_t begin, size_t length, size_t c,
                                 size_t k) {
  const T gamma = std::exp(-std::exp(v.gamma_log[k])), xi = std::sqrt(1 - gamma * gamma);
  const std::complex<T> lambda = std::polar(gamma, v.theta[k]);
  RotationTrace<T> out;
  std::complex<T> z = 0;
  for (size_t t = 0; t < length; ++t) {
    z = lambda * z + xi * v.x[(begin + t) * v.channels + c];
    out.z.push_back(z);
  }
  const size_t tokens = length < v.hop ? 1 : length / v.hop;
  const size_t rows = length < v.hop ? length : v.hop;
  for (size_t j = 0; j < tokens; ++j) {
    T sum = 0;
    for (size_t t = j * v.hop; t < j * v.hop + rows; ++t) sum += std::norm(out.z[t]);
    out.power.push_back(sum / static_cast<T>(rows));
  }
  return out;
}

/// Tokens [n, channels, bands]; `tokens` are their offsets.
template <class T>
std::vector<T> rotations_forward(const RotationValues<T>& v, const PackedSequences& sequences,
                                 const int64_t* tokens) {
  const size_t width = v.channels * v.bands;
  std::vector<T> out(static_cast<size_t>(tokens[sequences.count]) * width);
  for (size_t i = 0; i < sequences.count; ++i) {
    const size_t begin = sequences.begin(i), length = sequences.end(i) - begin;
    for (size_t p = 0; p < width; ++p) {
      const auto trace = rotation_powers(v, begin, length, p / v.bands, p % v.bands);
      for (size_t j = 0; j < trace.power.size(); ++j) {
        const T value = std::log(trace.power[j] + static_cast<T>(kPowerFloor));
        out[(static_cast<size_t>(tokens[i]) + j) * width + p] =
            (value - v.mean[p]) / v.deviation[p];
      }
    }
  }
  return out;
}

/// Gradients of θ, gamma_log and x.
template <class T>
RotationValues<T> rotations_backward(const RotationValues<T>& v, const PackedSequences& sequences,
                                     const int64_t* tokens, const std::vector<T>& dtokens) {
  const size_t width = v.channels * v.bands;
  RotationValues<T> out;
  out.theta.resize(v.bands), out.gamma_log.resize(v.bands), out.x.resize(v.x.size());
  for (size_t i = 0; i < sequences.count; ++i) {
    const size_t begin = sequences.begin(i), length = sequences.end(i) - begin;
    for (size_t p = 0; p < width; ++p) {
      const size_t c = p / v.bands, k = p % v.bands;
      const auto trace = rotation_powers(v, begin, length, c, k);
      const size_t rows = length < v.hop ? length : v.hop;
      const T decay = std::exp(v.gamma_log[k]), gamma = std::exp(-decay);
      const T xi = std::sqrt(1 - gamma * gamma);
      const std::complex<T> turn = std::polar(T(1), v.theta[k]), lambda = gamma * turn;
      std::complex<T> h = 0;
      T dgamma = 0, dtheta = 0, dxi = 0;
      for (size_t t = trace.power.size() * rows; t-- > 0;) {
        const size_t j = t / rows;
        const T dpower = dtokens[(static_cast<size_t>(tokens[i]) + j) * width + p] /
                         v.deviation[p] / (trace.power[j] + static_cast<T>(kPowerFloor));
        h = 2 * dpower / static_cast<T>(rows) * trace.z[t] + std::conj(lambda) * h;
        const T x = v.x[(begin + t) * v.channels + c];
        out.x[(begin + t) * v.channels + c] += xi * h.real();
        dxi += x * h.real();
        if (t == 0) continue;
        const std::complex<T> before = std::conj(h) * trace.z[t - 1];
        dgamma += (before * turn).real();
        dtheta += (before * lambda * std::complex<T>(0, 1)).real();
      }
      dgamma -= dxi * gamma / xi;
      out.theta[k] += dtheta;
      out.gamma_log[k] -= dgamma * gamma * decay;
    }
  }
  return out;
}

}  // namespace rotrnn::kernels::reference
