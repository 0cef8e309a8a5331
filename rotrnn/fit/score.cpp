#include "rotrnn/fit/score.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

namespace rotrnn::fit {
namespace {

double weight_at(std::span<const double> weights, size_t i) {
  return weights.empty() ? 1.0 : weights[i];
}

size_t best_class(const ScoredClasses& s, size_t i) {
  const double* row = s.scores.data() + i * s.outputs();
  return static_cast<size_t>(std::max_element(row, row + s.outputs()) - row);
}

/// log Σ exp(score/T) of a row.
double log_sum(const double* row, size_t count, double temperature) {
  const double most = *std::max_element(row, row + count);
  double sum = 0;
  for (size_t k = 0; k < count; ++k) sum += std::exp((row[k] - most) / temperature);
  return most / temperature + std::log(sum);
}

}  // namespace

Mean mean_of(std::span<const double> values, std::span<const double> weights,
             std::span<const int64_t> groups) {
  Mean out;
  double total = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    out.value += weight_at(weights, i) * values[i];
    total += weight_at(weights, i);
  }
  out.value /= total;
  // Σ over groups of (Σ w(x - mean))², by the total weight: the error of a ratio of sums.
  std::map<int64_t, double> sums;
  for (size_t i = 0; i < values.size(); ++i) {
    const int64_t group = groups.empty() ? static_cast<int64_t>(i) : groups[i];
    sums[group] += weight_at(weights, i) * (values[i] - out.value);
  }
  double square = 0;
  for (const auto& [group, sum] : sums) square += sum * sum;
  const auto count = static_cast<double>(sums.size());
  out.error = count < 2 ? std::numeric_limits<double>::quiet_NaN()
                        : std::sqrt(square * count / (count - 1)) / total;
  return out;
}

std::vector<double> log_losses(const ScoredClasses& s, double temperature) {
  std::vector<double> out;
  const size_t K = s.outputs();
  for (size_t i = 0; i < s.count(); ++i) {
    const double* row = s.scores.data() + i * K;
    const double right = row[static_cast<size_t>(s.classes[i])];
    out.push_back(log_sum(row, K, temperature) - right / temperature);
  }
  return out;
}

double best_temperature(const ScoredClasses& s) {
  const size_t K = s.outputs();
  const double doubt = 1 / static_cast<double>(s.count() + 1);
  const auto loss = [&](double t) {
    const double temperature = std::exp(t);
    double sum = 0;
    for (size_t i = 0; i < s.count(); ++i) {
      const double* row = s.scores.data() + i * K;
      double mean = 0;
      for (size_t k = 0; k < K; ++k) mean += row[k] / static_cast<double>(K);
      const double right = row[static_cast<size_t>(s.classes[i])];
      const double expected = (1 - doubt) * right + doubt * mean;
      sum += weight_at(s.weights, i) * (log_sum(row, K, temperature) - expected / temperature);
    }
    return sum;
  };
  // The loss is convex in 1/T, so it has one minimum in log T: golden sections.
  const double ratio = (std::sqrt(5.0) - 1) / 2;
  double low = std::log(1e-3), high = std::log(10.0);
  double a = high - ratio * (high - low), b = low + ratio * (high - low);
  double at_a = loss(a), at_b = loss(b);
  while (high - low > 1e-2) {
    if (at_a <= at_b) {
      high = b, b = a, at_b = at_a;
      a = high - ratio * (high - low);
      at_a = loss(a);
    } else {
      low = a, a = b, at_a = at_b;
      b = low + ratio * (high - low);
      at_b = loss(b);
    }
  }
  return std::exp((low + high) / 2);
}

std::vector<double> hits(const ScoredClasses& s) {
  std::vector<double> out;
  for (size_t i = 0; i < s.count(); ++i) {
    out.push_back(best_class(s, i) == static_cast<size_t>(s.classes[i]) ? 1.0 : 0.0);
  }
  return out;
}

double calibration_error(const ScoredClasses& s, double temperature) {
  constexpr size_t kBins = 10;
  double gap[kBins] = {}, total = 0;
  const size_t K = s.outputs();
  for (size_t i = 0; i < s.count(); ++i) {
    const double* row = s.scores.data() + i * K;
    const size_t best = best_class(s, i);
    const double p = std::exp(row[best] / temperature - log_sum(row, K, temperature));
    const size_t bin = std::min(kBins - 1, static_cast<size_t>(p * kBins));
    const bool right = best == static_cast<size_t>(s.classes[i]);
    gap[bin] += weight_at(s.weights, i) * ((right ? 1.0 : 0.0) - p);
    total += weight_at(s.weights, i);
  }
  double sum = 0;
  for (const double g : gap) sum += std::abs(g);
  return sum / total;
}

std::vector<int64_t> confusion(const ScoredClasses& s) {
  const size_t K = s.outputs();
  std::vector<int64_t> out(K * K, 0);
  for (size_t i = 0; i < s.count(); ++i) {
    ++out[static_cast<size_t>(s.classes[i]) * K + best_class(s, i)];
  }
  return out;
}

}  // namespace rotrnn::fit
