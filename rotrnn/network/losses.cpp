#include "rotrnn/network/losses.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "rotrnn/base/text/nearest.h"

namespace rotrnn {
namespace {

/// A row in double: outputs in, gradient of its loss out.
struct Row {
  std::span<const double> y;
  std::span<double> dy;
  size_t index;
};

// log(1 + e^x) without overflow.
double softplus(double x) {
  return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)));
}

double cross_entropy(const LossOptions&, const Targets& targets, const Row& row) {
  const double top = *std::max_element(row.y.begin(), row.y.end());
  double sum = 0;
  for (size_t k = 0; k < row.y.size(); ++k) sum += row.dy[k] = std::exp(row.y[k] - top);
  for (double& p : row.dy) p /= sum;
  const auto target = static_cast<size_t>(targets.classes[row.index]);
  row.dy[target] -= 1;
  return std::log(sum) + top - row.y[target];
}

double binary(const LossOptions& o, const Targets& targets, const Row& row) {
  const float* t = targets.values + row.index * row.y.size();
  double loss = 0, whole = 0;
  for (size_t k = 0; k < row.y.size(); ++k) {
    const double c = o.class_weights.empty() ? 1 : o.class_weights[k], y = row.y[k];
    loss += c * (softplus(y) - static_cast<double>(t[k]) * y);
    row.dy[k] = c * (1 / (1 + std::exp(-y)) - static_cast<double>(t[k]));
    whole += c;
  }
  if (whole == 0) return 0;  // and so are the gradients
  for (double& d : row.dy) d /= whole;
  return loss / whole;
}

// The mean over the outputs of term(y - target, slope).
template <class Term>
double of_errors(const Targets& targets, const Row& row, const Term& term) {
  const float* t = targets.values + row.index * row.y.size();
  const auto count = static_cast<double>(row.y.size());
  double loss = 0;
  for (size_t k = 0; k < row.y.size(); ++k) {
    double slope = 0;
    loss += term(row.y[k] - static_cast<double>(t[k]), slope) / count;
    row.dy[k] = slope / count;
  }
  return loss;
}

double mean_square(const LossOptions&, const Targets& targets, const Row& row) {
  return of_errors(targets, row, [](double e, double& slope) {
    slope = 2 * e;
    return e * e;
  });
}

double mean_absolute(const LossOptions&, const Targets& targets, const Row& row) {
  return of_errors(targets, row, [](double e, double& slope) {
    slope = e > 0 ? 1 : e < 0 ? -1 : 0;
    return std::abs(e);
  });
}

double huber(const LossOptions& o, const Targets& targets, const Row& row) {
  return of_errors(targets, row, [&](double e, double& slope) {
    slope = std::clamp(e, -o.delta, o.delta);
    return std::abs(e) <= o.delta ? e * e / 2 : o.delta * (std::abs(e) - o.delta / 2);
  });
}

double quantile(const LossOptions& o, const Targets& targets, const Row& row) {
  const size_t each = o.quantiles.size(), count = row.y.size() / each;
  const float* t = targets.values + row.index * count;
  double loss = 0;
  for (size_t k = 0; k < row.y.size(); ++k) {
    const double q = o.quantiles[k % each], e = static_cast<double>(t[k / each]) - row.y[k];
    loss += std::max(q * e, (q - 1) * e);
    row.dy[k] = (e > 0 ? -q : e < 0 ? 1 - q : 0) / static_cast<double>(row.y.size());
  }
  return loss / static_cast<double>(row.y.size());
}

struct Entry {
  Loss loss;
  const char* name;
  double (*of_row)(const LossOptions&, const Targets&, const Row&);
};
constexpr Entry kLosses[] = {
    {Loss::cross_entropy, "cross_entropy", cross_entropy},
    {Loss::binary, "binary", binary},
    {Loss::mean_square, "mean_square", mean_square},
    {Loss::mean_absolute, "mean_absolute", mean_absolute},
    {Loss::huber, "huber", huber},
    {Loss::quantile, "quantile", quantile},
};

const Entry& entry_of(Loss loss) {
  return *std::find_if(std::begin(kLosses), std::end(kLosses),
                       [&](const Entry& e) { return e.loss == loss; });
}

double row_weight(const LossOptions& o, const Targets& targets, size_t row) {
  const double example = targets.weights ? static_cast<double>(targets.weights[row]) : 1;
  if (o.loss != Loss::cross_entropy || o.class_weights.empty()) return example;
  return example * o.class_weights[static_cast<size_t>(targets.classes[row])];
}

void check(const LossOptions& o, const Targets& targets, size_t outputs) {
  const auto fail = [&](const std::string& what) {
    throw std::invalid_argument(fmt::format("loss {}: {}", loss_name(o.loss), what));
  };
  const bool by_class = o.loss == Loss::cross_entropy || o.loss == Loss::binary;
  if (!o.class_weights.empty() && (!by_class || o.class_weights.size() != outputs)) {
    fail(fmt::format("{} class weights for {} outputs", o.class_weights.size(), outputs));
  }
  for (const double c : o.class_weights) {
    if (!(c >= 0)) fail(fmt::format("a class weight is {}; they must not be negative", c));
  }
  if (o.loss == Loss::huber && !(o.delta > 0)) fail(fmt::format("delta is {}", o.delta));
  if (o.loss == Loss::quantile) {
    if (o.quantiles.empty() || outputs % o.quantiles.size() != 0) {
      fail(
          fmt::format("{} outputs for {} quantiles; there must be one for each quantile of each "
                      "target",
                      outputs, o.quantiles.size()));
    }
    for (const double q : o.quantiles) {
      if (!(q > 0 && q < 1)) fail(fmt::format("quantile {} is not between 0 and 1", q));
    }
  }
  if (o.loss != Loss::cross_entropy) {
    if (targets.rows > 0 && targets.values == nullptr)
      fail("its targets are values, and there are none");
    return;
  }
  if (targets.rows > 0 && targets.classes == nullptr)
    fail("its targets are classes, and there are none");
  for (size_t r = 0; r < targets.rows; ++r) {
    const int64_t c = targets.classes[r];
    if (c < 0 || static_cast<size_t>(c) >= outputs) {
      fail(fmt::format("class {} in row {}, but there are {} classes", c, r, outputs));
    }
  }
}

}  // namespace

double weight_of(const LossOptions& options, const Targets& targets) {
  double whole = 0;
  for (size_t r = 0; r < targets.rows; ++r) whole += row_weight(options, targets, r);
  return whole;
}

template <class T>
double loss_of(const LossOptions& options, const Targets& targets, const T* y, size_t outputs,
               T* dy, double scale) {
  check(options, targets, outputs);
  const auto of_row = entry_of(options.loss).of_row;
  const double whole = weight_of(options, targets);
  std::vector<double> row(outputs), gradient(outputs);
  double loss = 0;
  for (size_t r = 0; r < targets.rows; ++r) {
    std::copy_n(y + r * outputs, outputs, row.begin());
    const double w = whole > 0 ? row_weight(options, targets, r) / whole : 0;
    loss += w * of_row(options, targets, {row, gradient, r});
    for (size_t k = 0; dy != nullptr && k < outputs; ++k) {
      dy[r * outputs + k] = static_cast<T>(scale * w * gradient[k]);
    }
  }
  return loss;
}

template double loss_of(const LossOptions&, const Targets&, const float*, size_t, float*, double);
template double loss_of(const LossOptions&, const Targets&, const double*, size_t, double*, double);

void softmax(double* rows, size_t count, size_t outputs) {
  for (double* row = rows; row < rows + count * outputs; row += outputs) {
    const double top = *std::max_element(row, row + outputs);
    double sum = 0;
    for (size_t k = 0; k < outputs; ++k) sum += row[k] = std::exp(row[k] - top);
    for (size_t k = 0; k < outputs; ++k) row[k] /= sum;
  }
}

const char* loss_name(Loss loss) {
  return entry_of(loss).name;
}

std::vector<std::string> loss_names() {
  std::vector<std::string> names;
  for (const Entry& e : kLosses) names.emplace_back(e.name);
  return names;
}

Loss parse_loss(const std::string& name) {
  for (const Entry& e : kLosses) {
    if (name == e.name) return e.loss;
  }
  const auto names = loss_names();
  const std::string near = nearest(name, names);
  throw std::invalid_argument(
      fmt::format("unknown loss \"{}\"; there are {}{}", name, fmt::join(names, ", "),
                  near.empty() ? "" : fmt::format("; did you mean \"{}\"?", near)));
}

}  // namespace rotrnn
