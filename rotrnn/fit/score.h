#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace rotrnn::fit {

/// Scores of n examples [n, classes] and what is known of them. Empty weights: all 1; empty groups:
/// each example is one of its own.
struct ScoredClasses {
  std::span<const double> scores;
  std::span<const int64_t> classes;
  std::span<const double> weights;
  std::span<const int64_t> groups;

  size_t count() const { return classes.size(); }
  size_t outputs() const { return classes.empty() ? 0 : scores.size() / classes.size(); }
};

/// A mean with its standard error; with groups, that between groups (a cluster's examples are not
/// independent). The error is NaN with fewer than two groups.
struct Mean {
  double value = 0, error = 0;
};
Mean mean_of(std::span<const double> values, std::span<const double> weights,
             std::span<const int64_t> groups);

/// -log softmax(scores/temperature) of the right class, of each example.
std::vector<double> log_losses(const ScoredClasses& s, double temperature);

/// The temperature with the smallest weighted mean of these, between 1e-3 and 10, as if there were
/// one more example, of any class with the same probability: else a few examples that are all right
/// would make every answer certain.
double best_temperature(const ScoredClasses& s);

/// 1 where the highest score is that of the right class, else 0.
std::vector<double> hits(const ScoredClasses& s);

/// How far stated probabilities are from what happens: examples in ten bins of the highest
/// probability, Σ_bins |share right - mean probability|·share of examples.
double calibration_error(const ScoredClasses& s, double temperature);

/// [classes, classes]: right class by predicted class.
std::vector<int64_t> confusion(const ScoredClasses& s);

}  // namespace rotrnn::fit
