#include "rotrnn/network/losses.h"

#include <gtest/gtest.h>

#include <cmath>

#include "rotrnn/base/random.h"
#include "tests/support/folder.h"

// The six losses by their formulas, as one would write them in NumPy, and their gradients by
// differences.

namespace rotrnn {
namespace {

using test::message_of;

using Doubles = std::vector<double>;

// Outputs [rows, outputs] with targets of every kind.
struct Problem {
  LossOptions options;
  size_t rows = 7, outputs = 6;
  Doubles y;
  std::vector<int64_t> classes;
  std::vector<float> values, weights;

  Problem(Loss loss, uint64_t seed) {
    options.loss = loss;
    options.delta = 0.7;
    if (loss == Loss::quantile) options.quantiles = {0.1, 0.5, 0.9};  // of two targets
    Random random(seed, RandomSite::trial);
    for (size_t i = 0; i < rows * outputs; ++i) {
      y.push_back(2 * random.normal());
      const auto value = static_cast<float>(random.normal());
      values.push_back(loss == Loss::binary ? (value > 0 ? 1.0f : 0.25f) : value);
    }
    for (size_t r = 0; r < rows; ++r) {
      classes.push_back(random.below(static_cast<uint32_t>(outputs)));
      weights.push_back(static_cast<float>(random.below(3)));  // 0, 1 or 2
    }
    weights[0] = 2.5f;
  }

  Targets targets(bool weighted) const {
    return {rows, classes.data(), values.data(), weighted ? weights.data() : nullptr};
  }
  double loss(bool weighted) const {
    return loss_of(options, targets(weighted), y.data(), outputs);
  }

  // ∂loss/∂y_i by a central difference.
  double slope(size_t i, bool weighted, double h) {
    const double old = y[i];
    y[i] = old + h;
    const double plus = loss(weighted);
    y[i] = old - h;
    const double minus = loss(weighted);
    y[i] = old;
    return (plus - minus) / (2 * h);
  }
};

constexpr Loss kAll[] = {Loss::cross_entropy, Loss::binary, Loss::mean_square,
                         Loss::mean_absolute, Loss::huber,  Loss::quantile};

// The loss of a row, from the formula in which each is known.
double plain_row(const Problem& p, size_t r) {
  const double* y = p.y.data() + r * p.outputs;
  const LossOptions& o = p.options;
  const auto c = [&](size_t k) { return o.class_weights.empty() ? 1.0 : o.class_weights[k]; };
  if (o.loss == Loss::cross_entropy) {
    double sum = 0;
    for (size_t k = 0; k < p.outputs; ++k) sum += std::exp(y[k]);
    return -std::log(std::exp(y[p.classes[r]]) / sum);
  }
  const size_t each = o.loss == Loss::quantile ? o.quantiles.size() : 1;
  double loss = 0, whole = 0;
  for (size_t k = 0; k < p.outputs; ++k) {
    const auto t = static_cast<double>(p.values[r * p.outputs / each + k / each]);
    const double e = y[k] - t, probability = 1 / (1 + std::exp(-y[k]));
    double term = 0, share = 1;
    switch (o.loss) {
      case Loss::binary:
        share = c(k);
        term = -t * std::log(probability) - (1 - t) * std::log(1 - probability);
        break;
      case Loss::mean_square:
        term = e * e;
        break;
      case Loss::mean_absolute:
        term = std::abs(e);
        break;
      case Loss::huber:  // half the square, whose slope stops to grow at δ
        term = std::abs(e) < o.delta ? 0.5 * e * e
                                     : 0.5 * o.delta * o.delta + o.delta * (std::abs(e) - o.delta);
        break;
      case Loss::quantile:  // what is too small by e costs q·e, what is too large (1 - q)·e
        term = e < 0 ? -o.quantiles[k % each] * e : (1 - o.quantiles[k % each]) * e;
        break;
      case Loss::cross_entropy:  // above
        break;
    }
    loss += share * term;
    whole += share;
  }
  return loss / whole;
}

double plain_loss(const Problem& p, bool weighted) {
  double loss = 0, whole = 0;
  for (size_t r = 0; r < p.rows; ++r) {
    double w = weighted ? static_cast<double>(p.weights[r]) : 1;
    if (p.options.loss == Loss::cross_entropy && !p.options.class_weights.empty()) {
      w *= p.options.class_weights[static_cast<size_t>(p.classes[r])];
    }
    loss += w * plain_row(p, r);
    whole += w;
  }
  return loss / whole;
}

// With and without weights of examples and, where there are any, of classes.
template <class F>
void for_problems(const F& f) {
  for (const Loss loss : kAll) {
    for (const bool weighted : {false, true}) {
      for (const bool classes : {false, true}) {
        if (classes && loss != Loss::cross_entropy && loss != Loss::binary) continue;
        SCOPED_TRACE(std::string(loss_name(loss)) + (weighted ? " weighted" : "") +
                     (classes ? " by class" : ""));
        Problem p(loss, 3);
        if (classes) p.options.class_weights = {0.5, 2, 0, 1, 3, 0.25};
        f(p, weighted);
      }
    }
  }
}

TEST(Losses, AreTheirFormulas) {
  for_problems([](Problem& p, bool weighted) {
    EXPECT_NEAR(p.loss(weighted), plain_loss(p, weighted), 1e-13);
  });
}

TEST(Losses, GradientsAreTheDifferences) {
  for_problems([](Problem& p, bool weighted) {
    Doubles dy(p.y.size());
    loss_of(p.options, p.targets(weighted), p.y.data(), p.outputs, dy.data());
    // Random numbers are nowhere near a kink.
    for (size_t i = 0; i < dy.size(); ++i) EXPECT_NEAR(dy[i], p.slope(i, weighted, 1e-6), 1e-9);
  });
}

TEST(Losses, ScaleIsThatOfTheGradientAlone) {
  for_problems([](Problem& p, bool weighted) {
    Doubles one(p.y.size()), scaled(p.y.size());
    const auto loss = [&](Doubles& dy, double scale) {
      return loss_of(p.options, p.targets(weighted), p.y.data(), p.outputs, dy.data(), scale);
    };
    EXPECT_EQ(loss(one, 1), loss(scaled, 0.375));
    for (size_t i = 0; i < one.size(); ++i) EXPECT_NEAR(scaled[i], 0.375 * one[i], 1e-15);
  });
}

// Outputs in float32 are the same numbers, computed in double and rounded once.
TEST(Losses, OfFloatsAreThoseOfDoubles) {
  for_problems([](Problem& p, bool weighted) {
    std::vector<float> y(p.y.begin(), p.y.end()), dy(y.size());
    p.y.assign(y.begin(), y.end());
    Doubles exact(y.size());
    EXPECT_EQ(loss_of(p.options, p.targets(weighted), y.data(), p.outputs, dy.data()),
              loss_of(p.options, p.targets(weighted), p.y.data(), p.outputs, exact.data()));
    for (size_t i = 0; i < y.size(); ++i) EXPECT_EQ(dy[i], static_cast<float>(exact[i]));
  });
}

TEST(Losses, AreKnownNumbers) {
  const auto loss = [](LossOptions options, Doubles y, std::vector<float> values,
                       std::vector<int64_t> classes = {}) {
    const size_t rows = classes.empty() ? 1 : classes.size();
    return loss_of(options, {rows, classes.data(), values.data(), nullptr}, y.data(),
                   y.size() / rows);
  };
  EXPECT_NEAR(loss({Loss::cross_entropy}, {0, 0, 0, 0}, {}, {2}), std::log(4.0), 1e-15);
  // With weights 1 and 3: (1·log 2 + 3·log(1 + e))/4.
  LossOptions weighted{Loss::cross_entropy};
  weighted.class_weights = {1, 3};
  EXPECT_NEAR(loss(weighted, {5, 5, 1, 0}, {}, {0, 1}),
              (std::log(2.0) + 3 * std::log1p(std::exp(1.0))) / 4, 1e-15);
  EXPECT_NEAR(loss({Loss::binary}, {0, 0}, {0, 1}), std::log(2.0), 1e-15);
  EXPECT_EQ(loss({Loss::mean_square}, {1, 4}, {0, 1}), 5);
  EXPECT_EQ(loss({Loss::mean_absolute}, {1, 4}, {0, 1}), 2);
  EXPECT_EQ(loss({Loss::huber, 2}, {1, 4}, {0, 1}), (0.5 + 4) / 2);
  LossOptions quantile{Loss::quantile};
  quantile.quantiles = {0.25, 0.75};
  EXPECT_EQ(loss(quantile, {1, 3}, {2}), (0.25 * 1 + 0.25 * 1) / 2);
}

TEST(Losses, LargeOutputsDoNotOverflow) {
  Doubles y{1000, -1000, 3}, dy(3);
  const int64_t c = 1;
  EXPECT_EQ(loss_of<double>({Loss::cross_entropy}, {1, &c}, y.data(), 3, dy.data()), 2000);
  EXPECT_EQ(dy, (Doubles{1, -1, 0}));
  const float t[] = {0, 1, 0};
  const double loss = loss_of<double>({Loss::binary}, {1, nullptr, t}, y.data(), 3, dy.data());
  EXPECT_NEAR(loss, (1000 + 1000 + std::log1p(std::exp(3.0))) / 3, 1e-12);
  EXPECT_NEAR(dy[0], 1.0 / 3, 1e-15);
  EXPECT_NEAR(dy[1], -1.0 / 3, 1e-15);
}

TEST(Losses, WithoutWeightAreNothing) {
  for (const Loss loss : kAll) {
    SCOPED_TRACE(loss_name(loss));
    Problem p(loss, 4);
    std::fill(p.weights.begin(), p.weights.end(), 0.0f);
    Doubles dy(p.y.size(), NAN);
    EXPECT_EQ(loss_of(p.options, p.targets(true), p.y.data(), p.outputs, dy.data()), 0);
    EXPECT_EQ(dy, Doubles(p.y.size()));
    EXPECT_EQ(weight_of(p.options, p.targets(true)), 0);
    EXPECT_EQ(loss_of(p.options, {}, p.y.data(), p.outputs), 0) << "no rows";
  }
  // Nor where the classes that are there have none.
  Problem p(Loss::cross_entropy, 4);
  p.options.class_weights = Doubles(p.outputs, 1);
  p.options.class_weights[0] = 0;
  std::fill(p.classes.begin(), p.classes.end(), 0);
  EXPECT_EQ(p.loss(false), 0);
  Problem labels(Loss::binary, 4);
  labels.options.class_weights = Doubles(labels.outputs, 0);
  Doubles dy(labels.y.size(), NAN);
  EXPECT_EQ(loss_of(labels.options, labels.targets(true), labels.y.data(), 6, dy.data()), 0);
  EXPECT_EQ(dy, Doubles(dy.size()));
}

// A part of a batch counts with its share of the weight, and a row of weight 0 is as if it were
// not there.
TEST(Losses, OfPartsAddUp) {
  for_problems([](Problem& p, bool weighted) {
    const double whole = weight_of(p.options, p.targets(weighted));
    const size_t cut = 3;
    Targets first = p.targets(weighted), rest = first;
    first.rows = cut;
    rest.rows = p.rows - cut;
    rest.classes += cut;
    rest.values += cut * (p.options.loss == Loss::quantile ? 2 : p.outputs);
    if (weighted) rest.weights += cut;
    double sum = 0;
    for (const auto& [part, at] : {std::pair{first, size_t{0}}, std::pair{rest, cut}}) {
      sum += weight_of(p.options, part) / whole *
             loss_of(p.options, part, p.y.data() + at * p.outputs, p.outputs);
    }
    EXPECT_NEAR(sum, p.loss(weighted), 1e-14);
  });
}

TEST(Losses, RefuseWhatDoesNotFit) {
  const auto refused = [](Loss loss, auto change, const char* expected) {
    Problem p(loss, 5);
    Targets targets = p.targets(false);
    change(p, targets);
    const std::string message = message_of<std::invalid_argument>(
        [&] { loss_of(p.options, targets, p.y.data(), p.outputs); });
    EXPECT_NE(message.find(expected), std::string::npos) << message;
    EXPECT_TRUE(message.starts_with(std::string("loss ") + loss_name(loss))) << message;
  };
  const auto weights = [](Doubles values) {
    return [values](Problem& p, Targets&) { p.options.class_weights = values; };
  };
  refused(Loss::cross_entropy, weights({1, 1}), "2 class weights for 6 outputs");
  refused(Loss::binary, weights({1, 1, 1, 1, 1, -1}), "a class weight is -1");
  refused(Loss::cross_entropy, weights({1, 1, 1, 1, 1, NAN}), "a class weight is nan");
  refused(Loss::mean_square, weights({1, 1, 1, 1, 1, 1}), "6 class weights");
  for (const double delta : {0.0, -1.0, std::nan("")}) {
    refused(
        Loss::huber, [&](Problem& p, Targets&) { p.options.delta = delta; }, "delta is");
  }
  const auto quantiles = [](Doubles values) {
    return [values](Problem& p, Targets&) { p.options.quantiles = values; };
  };
  refused(Loss::quantile, quantiles({}), "0 quantiles");
  refused(Loss::quantile, quantiles({0.1, 0.5, 0.6, 0.9}), "6 outputs for 4 quantiles");
  refused(Loss::quantile, quantiles({0, 0.5}), "quantile 0 is not between 0 and 1");
  refused(Loss::quantile, quantiles({0.5, 1}), "quantile 1 is not between 0 and 1");
  refused(
      Loss::cross_entropy, [](Problem&, Targets& t) { t.classes = nullptr; }, "are classes");
  refused(
      Loss::huber, [](Problem&, Targets& t) { t.values = nullptr; }, "are values");
  for (const int64_t wrong : {-1, 6}) {
    refused(
        Loss::cross_entropy, [&](Problem& p, Targets&) { p.classes[2] = wrong; }, "in row 2");
  }
}

TEST(Losses, HaveNames) {
  const auto names = loss_names();
  ASSERT_EQ(names.size(), std::size(kAll));
  for (const Loss loss : kAll) EXPECT_EQ(parse_loss(loss_name(loss)), loss);
  EXPECT_EQ(names[2], "mean_square");
  const auto message = message_of<std::invalid_argument>([] { parse_loss("mean_sqare"); });
  EXPECT_NE(message.find("did you mean \"mean_square\"?"), std::string::npos) << message;
}

TEST(Softmax, IsTheExponentialsOverTheirSum) {
  Doubles rows{0, 1, 2, 1000, 1001, 1002, -1000, -999, -998};
  softmax(rows.data(), 3, 3);
  const double sum = 1 + std::exp(1.0) + std::exp(2.0);
  for (size_t i = 0; i < rows.size(); ++i) {
    EXPECT_NEAR(rows[i], std::exp(static_cast<double>(i % 3)) / sum, 1e-15);
  }
}

}  // namespace
}  // namespace rotrnn
