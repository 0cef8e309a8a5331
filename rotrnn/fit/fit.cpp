#include "rotrnn/fit/fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <stdexcept>

#include "rotrnn/base/random.h"
#include "rotrnn/base/threads.h"
#include "rotrnn/fit/penalty.h"
#include "rotrnn/fit/ridge.h"
#include "rotrnn/kernels/gemm/dense.h"

namespace rotrnn::fit {
namespace {

// More rows than this go through the Gram matrix of the features, even where they are fewer than
// the features: n³ of a few thousand is a second.
constexpr size_t kMostRows = 4096;
constexpr size_t kMostHeldOut = 2000;
constexpr double kUneven = 1.5;  // largest class over smallest, from which on they are weighted
constexpr size_t kMostScores = 1 << 22;  // that a temperature is chosen by

/// The examples that count.
struct Chosen {
  std::vector<size_t> numbers;  // in the source
  std::vector<int64_t> classes, groups;
  std::vector<double> y, weights;  // [n, outputs], [n] with the mean 1
};

void check(const Source& source, const Targets& t) {
  const size_t n = source.count;
  const bool sized = (t.classes.size() == n || t.values.size() == n * t.outputs) &&
                     (t.groups.empty() || t.groups.size() == n) &&
                     (t.weights.empty() || t.weights.size() == n);
  if (!sized || t.outputs == 0) {
    throw std::invalid_argument(fmt::format(
        "fit: {} examples, {} classes, {} values, {} groups, {} weights; there must be "
        "a class or {} values for each example, and a group and a weight or none",
        n, t.classes.size(), t.values.size(), t.groups.size(), t.weights.size(), t.outputs));
  }
  for (size_t i = 0; i < t.classes.size(); ++i) {
    if (t.classes[i] >= 0 && static_cast<size_t>(t.classes[i]) < t.outputs) continue;
    throw std::invalid_argument(fmt::format("fit: example {} is of class {}; there are {} classes",
                                            i + 1, t.classes[i], t.outputs));
  }
  for (size_t i = 0; i < t.values.size(); ++i) {
    if (std::isfinite(t.values[i])) continue;
    throw std::invalid_argument(
        fmt::format("fit: the target of example {} is not a finite number; leave the example out",
                    i / t.outputs + 1));
  }
  for (size_t i = 0; i < t.weights.size(); ++i) {
    if (t.weights[i] >= 0 && std::isfinite(t.weights[i])) continue;
    throw std::invalid_argument(
        fmt::format("fit: example {} has the weight {}; a weight is finite and not negative", i + 1,
                    t.weights[i]));
  }
}

/// Weights with the mean 1, balanced where classes are uneven.
void set_weights(Chosen& c, const Targets& t, bool balance, std::vector<std::string>& messages) {
  const size_t n = c.numbers.size();
  for (const size_t i : c.numbers) c.weights.push_back(t.weights.empty() ? 1.0 : t.weights[i]);
  if (t.classification() && balance) {
    std::vector<double> sums(t.outputs, 0.0);
    for (size_t i = 0; i < n; ++i) sums[static_cast<size_t>(c.classes[i])] += c.weights[i];
    std::vector<double> there = sums;
    std::erase(there, 0.0);
    const auto [least, most] = std::minmax_element(there.begin(), there.end());
    if (*most > kUneven * *least) {
      for (size_t i = 0; i < n; ++i) c.weights[i] /= sums[static_cast<size_t>(c.classes[i])];
      messages.push_back("classes are uneven: each counts the same in the fit");
    }
  }
  const double total = std::accumulate(c.weights.begin(), c.weights.end(), 0.0);
  for (double& w : c.weights) w *= static_cast<double>(n) / total;
}

Chosen choose(const Targets& t, bool balance, size_t count, std::vector<std::string>& messages) {
  Chosen c;
  for (size_t i = 0; i < count; ++i) {
    if (!t.weights.empty() && t.weights[i] == 0) continue;
    c.numbers.push_back(i);
    if (!t.groups.empty()) c.groups.push_back(t.groups[i]);
    if (t.classification()) c.classes.push_back(t.classes[i]);
    for (size_t k = 0; k < t.outputs; ++k) {
      c.y.push_back(!t.classification()                      ? t.values[i * t.outputs + k]
                    : static_cast<size_t>(t.classes[i]) == k ? 1.0
                                                             : -1.0);
    }
  }
  if (c.numbers.size() < 2) {
    throw std::invalid_argument(
        fmt::format("fit: {} examples to learn from; at least two are needed, better twenty",
                    c.numbers.size()));
  }
  if (t.classification() && std::adjacent_find(c.classes.begin(), c.classes.end(),
                                               std::not_equal_to<>()) == c.classes.end()) {
    throw std::invalid_argument(
        "fit: all examples to learn from are of one class; give examples of two at least");
  }
  if (!c.groups.empty()) {  // numbers from 0 on, without gaps
    std::map<int64_t, int64_t> numbers;
    for (int64_t& g : c.groups) {
      g = numbers.try_emplace(g, static_cast<int64_t>(numbers.size())).first->second;
    }
    if (numbers.size() < 2) {
      c.groups.clear();
      messages.push_back("all examples are of one group: groups are not used");
    }
  }
  set_weights(c, t, balance, messages);
  return c;
}

/// How features become columns of mean 0 and deviation 1; constant ones become 0.
struct Scaling {
  std::vector<float> mean, inverse;

  Scaling(const float* x, const double* weights, size_t n, size_t F, int threads)
      : mean(F), inverse(F) {
    kernels::parallel_for(threads, [&](int t) {
      const auto many = static_cast<size_t>(threads), part = static_cast<size_t>(t);
      const size_t begin = F * part / many, end = F * (part + 1) / many;
      std::vector<double> sum(end - begin, 0.0), square(end - begin, 0.0);
      double total = 0;
      for (size_t i = 0; i < n; ++i) {
        const double w = weights[i];
        total += w;
        for (size_t f = begin; f < end; ++f) sum[f - begin] += w * x[i * F + f];
      }
      for (double& s : sum) s /= total;
      for (size_t i = 0; i < n; ++i) {
        for (size_t f = begin; f < end; ++f) {
          const double d = x[i * F + f] - sum[f - begin];
          square[f - begin] += weights[i] * d * d;
        }
      }
      for (size_t f = begin; f < end; ++f) {
        const double deviation = std::sqrt(square[f - begin] / total);
        const bool varies = deviation > 1e-6 * std::max(1e-3, std::abs(sum[f - begin]));
        mean[f] = static_cast<float>(sum[f - begin]);
        inverse[f] = varies ? static_cast<float>(1 / deviation) : 0.0f;
      }
    });
  }

  void apply(float* x, size_t n, int threads) const {
    const size_t F = mean.size();
    kernels::parallel_for(threads, [&](int t) {
      const auto many = static_cast<size_t>(threads), part = static_cast<size_t>(t);
      for (size_t i = n * part / many; i < n * (part + 1) / many; ++i) {
        float* row = x + i * F;
        for (size_t f = 0; f < F; ++f) row[f] = (row[f] - mean[f]) * inverse[f];
      }
    });
  }
};

/// Features of the sequences of a block, appended or written to `out`.
void block_features(const kernels::FeatureBank& bank, const Block& block, float* out, int threads) {
  std::vector<kernels::BankSequence> sequences;
  for (size_t i = 0; i < block.sequences(); ++i) {
    sequences.push_back(block.sequence(i, bank.channels));
  }
  kernels::bank_features(bank.view(), sequences, out, threads);
}

std::vector<float> all_features(const kernels::FeatureBank& bank, const Source& source,
                                std::span<const size_t> numbers, int threads) {
  const size_t F = bank.features();
  std::vector<float> out(numbers.size() * F);
  float* to = out.data();
  for_blocks(source, numbers, threads, [&](std::span<const size_t> part, const Block& block) {
    block_features(bank, block, to, threads);
    to += part.size() * F;
  });
  return out;
}

/// Rows of one of the three lists.
Chosen part_of(const Chosen& c, const std::vector<size_t>& rows, size_t outputs) {
  Chosen out;
  for (const size_t i : rows) {
    out.numbers.push_back(c.numbers[i]);
    out.weights.push_back(c.weights[i]);
    if (!c.classes.empty()) out.classes.push_back(c.classes[i]);
    if (!c.groups.empty()) out.groups.push_back(c.groups[i]);
    out.y.insert(out.y.end(), c.y.begin() + static_cast<ptrdiff_t>(i * outputs),
                 c.y.begin() + static_cast<ptrdiff_t>((i + 1) * outputs));
  }
  return out;
}

double mean_square(const std::vector<double>& predicted, const Chosen& c, size_t outputs,
                   std::vector<double>* each = nullptr) {
  std::vector<double> squares;
  for (size_t i = 0; i < c.numbers.size(); ++i) {
    double sum = 0;
    for (size_t k = 0; k < outputs; ++k) {
      const double e = predicted[i * outputs + k] - c.y[i * outputs + k];
      sum += e * e / static_cast<double>(outputs);
    }
    squares.push_back(sum);
  }
  if (each != nullptr) *each = squares;
  return mean_of(squares, c.weights, {}).value;
}

/// What chooses: the log loss at its best temperature, or the mean square.
double criterion(const std::vector<double>& predicted, const Chosen& c, size_t outputs,
                 double* temperature) {
  if (c.classes.empty()) return mean_square(predicted, c, outputs);
  ScoredClasses s{predicted, c.classes, c.weights, {}};
  std::vector<double> few_scores, few_weights;
  std::vector<int64_t> few_classes;
  const size_t step = (predicted.size() + kMostScores - 1) / kMostScores;
  if (step > 1) {
    for (size_t i = 0; i < c.numbers.size(); i += step) {
      few_classes.push_back(c.classes[i]);
      few_weights.push_back(c.weights[i]);
      few_scores.insert(few_scores.end(), predicted.begin() + static_cast<ptrdiff_t>(i * outputs),
                        predicted.begin() + static_cast<ptrdiff_t>((i + 1) * outputs));
    }
    s = {few_scores, few_classes, few_weights, {}};
  }
  *temperature = best_temperature(s);
  return mean_of(log_losses(s, *temperature), s.weights, {}).value;
}

Estimate estimate_of(EstimateKind kind, const std::vector<double>& predicted, const Chosen& c,
                     size_t outputs, double temperature) {
  Estimate e;
  e.kind = kind;
  e.examples = c.numbers.size();
  if (c.classes.empty()) {
    std::vector<double> squares;
    mean_square(predicted, c, outputs, &squares);
    e.loss = mean_of(squares, c.weights, c.groups);
    return e;
  }
  const ScoredClasses s{predicted, c.classes, c.weights, c.groups};
  e.accuracy = mean_of(hits(s), {}, c.groups);
  e.loss = mean_of(log_losses(s, temperature), c.weights, c.groups);
  e.calibration = calibration_error(s, temperature);
  e.confusion = confusion(s);
  return e;
}

/// Folds scale and temperature into the head.
void set_head(Fitted& model, const std::vector<double>& beta, const std::vector<double>& intercept,
              const Scaling& scaling) {
  const size_t F = scaling.mean.size(), m = model.outputs;
  model.weight.resize(m * F);
  model.bias.resize(m);
  const size_t S = model.bank.states();
  model.importance.assign(S, 0.0);
  for (size_t k = 0; k < m; ++k) {
    double bias = intercept[k];
    for (size_t f = 0; f < F; ++f) {
      const double w = beta[k * F + f] * static_cast<double>(scaling.inverse[f]);
      bias -= w * static_cast<double>(scaling.mean[f]);
      model.weight[k * F + f] = static_cast<float>(w / model.temperature);
      if (scaling.inverse[f] > 0) model.importance[f % S] += std::pow(beta[k * F + f], 2);
    }
    model.bias[k] = static_cast<float>(bias / model.temperature);
  }
  for (double& x : model.importance) x = std::sqrt(x);
}

void fit_rows(Fitted& model, const Source& source, const Chosen& c, int threads) {
  const size_t n = c.numbers.size(), m = model.outputs, F = model.bank.features();
  std::vector<float> x = all_features(model.bank, source, c.numbers, threads);
  const Scaling scaling(x.data(), c.weights.data(), n, F, threads);
  scaling.apply(x.data(), n, threads);
  RowRidge ridge({n, F, m, x.data(), c.y.data(), c.weights.data()}, threads);
  const double scale = std::max(ridge.scale(), 1e-6);
  double temperature = 1;
  const auto loss = [&](double penalty) -> std::optional<double> {
    if (!ridge.solve(penalty * scale, c.groups)) return std::nullopt;
    return criterion(ridge.left_out(), c, m, &temperature);
  };
  model.penalty = search_penalty(loss);
  if (!loss(model.penalty)) throw std::runtime_error("fit: the equations are not solvable");
  model.temperature = temperature;
  model.estimate = estimate_of(
      c.groups.empty() ? EstimateKind::leave_one_out : EstimateKind::leave_one_group_out,
      ridge.left_out(), c, m, temperature);
  set_head(model, ridge.coefficients(), ridge.intercepts(), scaling);
}

/// A fifth of the rows, or whole groups of about so many; ascending.
std::vector<size_t> held_out_rows(const Chosen& c, uint64_t seed) {
  const size_t n = c.numbers.size(), wanted = std::min(n / 5 + 1, kMostHeldOut);
  Random random(seed, RandomSite::fit, {100});
  std::vector<std::vector<size_t>> units;
  for (size_t i = 0; i < n; ++i) {
    const size_t unit = c.groups.empty() ? i : static_cast<size_t>(c.groups[i]);
    if (units.size() <= unit) units.resize(unit + 1);
    units[unit].push_back(i);
  }
  std::vector<size_t> out;
  for (size_t i = 0; i + 1 < units.size() && out.size() < wanted; ++i) {
    std::swap(units[i], units[i + random.below(static_cast<uint32_t>(units.size() - i))]);
    for (const size_t row : units[i]) {
      if (out.size() < 2 * kMostHeldOut) out.push_back(row);
    }
  }
  std::sort(out.begin(), out.end());
  return out;
}

/// Scores of features by coefficients.
std::vector<double> scores_of(const std::vector<float>& x, size_t n, const ColumnRidge& ridge,
                              size_t outputs, int threads) {
  const size_t F = x.size() / std::max<size_t>(n, 1);
  std::vector<float> weight(ridge.coefficients().begin(), ridge.coefficients().end());
  std::vector<float> bias(ridge.intercepts().begin(), ridge.intercepts().end());
  std::vector<float> out(n * outputs);
  kernels::dense_forward({F, outputs, weight.data(), bias.data()}, x.data(), n, out.data(),
                         threads);
  return {out.begin(), out.end()};
}

void fit_columns(Fitted& model, const Source& source, const Chosen& c, uint64_t seed, int threads) {
  const size_t m = model.outputs, F = model.bank.features();
  const std::vector<size_t> held = held_out_rows(c, seed);
  // What is neither held out nor of a group of which something is.
  std::vector<char> out_of_fit(c.numbers.size(), 0), group_held(c.numbers.size(), 0);
  for (const size_t i : held) {
    out_of_fit[i] = 1;
    if (!c.groups.empty()) group_held[static_cast<size_t>(c.groups[i])] = 1;
  }
  std::vector<size_t> rest, missing;
  for (size_t i = 0; i < c.numbers.size(); ++i) {
    const bool left = out_of_fit[i] != 0 ||
                      (!c.groups.empty() && group_held[static_cast<size_t>(c.groups[i])] != 0);
    (left ? missing : rest).push_back(i);
  }
  const Chosen test = part_of(c, held, m), train = part_of(c, rest, m);
  std::vector<float> held_x = all_features(model.bank, source, test.numbers, threads);
  const Scaling scaling(held_x.data(), test.weights.data(), held.size(), F, threads);
  scaling.apply(held_x.data(), held.size(), threads);
  ColumnRidge ridge(F, m, threads);
  const auto add = [&](const Chosen& part) {
    size_t at = 0;
    for_blocks(
        source, part.numbers, threads, [&](std::span<const size_t> numbers, const Block& block) {
          std::vector<float> x(numbers.size() * F);
          block_features(model.bank, block, x.data(), threads);
          scaling.apply(x.data(), numbers.size(), threads);
          ridge.add(x.data(), part.y.data() + at * m, part.weights.data() + at, numbers.size());
          at += numbers.size();
        });
  };
  add(train);
  const double scale = std::max(ridge.scale(), 1e-6);
  double temperature = 1;
  std::vector<double> predicted;
  const auto loss = [&](double penalty) -> std::optional<double> {
    if (!ridge.solve(penalty * scale)) return std::nullopt;
    predicted = scores_of(held_x, held.size(), ridge, m, threads);
    return criterion(predicted, test, m, &temperature);
  };
  model.penalty = search_penalty(loss);
  if (!loss(model.penalty)) throw std::runtime_error("fit: the equations are not solvable");
  model.temperature = temperature;
  model.estimate = estimate_of(EstimateKind::held_out, predicted, test, m, temperature);
  // What was held out for the choice is learned from too.
  add(part_of(c, missing, m));
  if (!ridge.solve(model.penalty * scale)) {
    throw std::runtime_error("fit: the equations are not solvable");
  }
  set_head(model, ridge.coefficients(), ridge.intercepts(), scaling);
}

}  // namespace

Fitted fit(const Source& source, const Targets& targets, const FitOptions& options) {
  check(source, targets);
  Fitted model;
  model.outputs = targets.outputs;
  const int threads = std::max(1, options.threads);
  const Chosen chosen = choose(targets, options.balance, source.count, model.messages);
  BankOptions bank = options.bank;
  bank.states = options.states;
  bank.seed = options.seed;
  model.bank = draw_bank(bank, source, threads);
  const size_t n = chosen.numbers.size(), F = model.bank.features();
  if (n <= std::min(F, kMostRows)) {
    fit_rows(model, source, chosen, threads);
  } else {
    fit_columns(model, source, chosen, options.seed, threads);
  }
  return model;
}

std::vector<float> predict(const Fitted& model, const Source& source, int threads) {
  const size_t F = model.bank.features();
  std::vector<size_t> numbers(source.count);
  std::iota(numbers.begin(), numbers.end(), size_t{0});
  std::vector<float> out(source.count * model.outputs);
  float* to = out.data();
  for_blocks(source, numbers, threads, [&](std::span<const size_t> part, const Block& block) {
    std::vector<float> x(part.size() * F);
    block_features(model.bank, block, x.data(), threads);
    kernels::dense_forward({F, model.outputs, model.weight.data(), model.bias.data()}, x.data(),
                           part.size(), to, threads);
    to += part.size() * model.outputs;
  });
  return out;
}

const char* estimate_name(EstimateKind kind) {
  switch (kind) {
    case EstimateKind::leave_one_out:
      return "leave one out";
    case EstimateKind::leave_one_group_out:
      return "leave one group out";
    case EstimateKind::held_out:
      return "held out";
  }
  return "";
}

}  // namespace rotrnn::fit
