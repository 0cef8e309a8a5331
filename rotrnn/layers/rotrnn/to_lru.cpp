#include "rotrnn/layers/rotrnn/to_lru.h"

#include <cmath>
#include <numbers>
#include <stdexcept>

#include "rotrnn/layers/rotrnn/rotrnn.h"

namespace rotrnn {
namespace {

// V [D, 2S] reads planes, C [D, S] complex numbers: Re(C z) = Re C·Re z - Im C·Im z.
void split(const std::vector<double>& V, size_t S, std::vector<double>& re,
           std::vector<double>& im) {
  for (size_t i = 0; i < V.size(); ++i) {
    if (i % (2 * S) < S) {
      re.push_back(V[i]);
    } else {
      im.push_back(-V[i]);
    }
  }
}

}  // namespace

LruParameters to_lru(const LayerOptions& options, const LayerValues& values) {
  if (options.rotrnn.stationary_start) {
    throw std::invalid_argument("to_lru: an LRU has no stationary start; train without it");
  }
  const auto s = std::get<Diagonal<double>>(recurrence_rotrnn(options, values, true));
  const auto D = static_cast<size_t>(s.width), S = static_cast<size_t>(s.states);
  LruParameters lru;
  lru.width = s.width;
  lru.states = s.states;
  lru.B_re.resize(S * D);
  lru.B_im.resize(S * D);
  for (size_t j = 0; j < S; ++j) {
    const double log_radius = std::log(std::hypot(s.lambda_re[j], s.lambda_im[j]));
    if (!(log_radius < 0)) {
      throw std::invalid_argument("to_lru: some |λ| is 1 or more, which an LRU cannot express");
    }
    // An angle has a logarithm when it is above 0.
    double angle = std::atan2(s.lambda_im[j], s.lambda_re[j]);
    if (angle <= 0) angle += 2 * std::numbers::pi;
    const double rest = -std::expm1(2 * log_radius);  // 1 - |λ|²
    lru.nu_log.push_back(std::log(-log_radius));
    lru.theta_log.push_back(std::log(angle));
    lru.gamma_log.push_back(0.5 * std::log(rest));
    for (size_t k = j * D; k < (j + 1) * D; ++k) {
      lru.B_re[k] = s.W[k] / std::sqrt(rest);
      lru.B_im[k] = s.W[S * D + k] / std::sqrt(rest);
    }
  }
  split(s.V, S, lru.C_re, lru.C_im);
  split(s.V_reverse, S, lru.C_reverse_re, lru.C_reverse_im);
  lru.D = s.D;
  return lru;
}

}  // namespace rotrnn
