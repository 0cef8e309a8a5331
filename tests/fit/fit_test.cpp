#include "rotrnn/fit/fit.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "rotrnn/base/random.h"

namespace rotrnn::fit {
namespace {

/// Noisy waves whose frequency is the class; ragged.
struct Waves {
  std::vector<float> values;
  std::vector<int64_t> offsets{0};
  Targets targets;

  Source source() const { return packed_source(values, offsets, 1); }
};

Waves make_waves(size_t count, size_t classes, uint64_t seed, double noise = 0.3) {
  Waves w;
  w.targets.outputs = classes;
  Random random(seed, RandomSite::trial);
  for (size_t i = 0; i < count; ++i) {
    const size_t label = i % classes, length = 40 + random.below(40);
    const double phase = 6.28 * random.uniform();
    for (size_t t = 0; t < length; ++t) {
      const double angle = phase + 0.3 * static_cast<double>((label + 1) * t);
      w.values.push_back(static_cast<float>(std::sin(angle) + noise * random.normal()));
    }
    w.offsets.push_back(static_cast<int64_t>(w.values.size()));
    w.targets.classes.push_back(static_cast<int64_t>(label));
  }
  return w;
}

FitOptions small(size_t states = 64) {
  FitOptions o;
  o.states = states;
  o.threads = 2;
  return o;
}

double accuracy(const Fitted& model, const Waves& w) {
  const std::vector<float> y = predict(model, w.source(), 2);
  const std::vector<double> scores(y.begin(), y.end());
  return mean_of(hits({scores, w.targets.classes, {}, {}}), {}, {}).value;
}

TEST(Fit, LearnsWavesByBothEquations) {
  const Waves test = make_waves(200, 3, 2);
  for (const size_t count : {60, 900}) {  // fewer and more than the features
    const Fitted model =
        fit(make_waves(count, 3, 1).source(), make_waves(count, 3, 1).targets, small());
    EXPECT_EQ(model.estimate.kind,
              count == 60 ? EstimateKind::leave_one_out : EstimateKind::held_out);
    EXPECT_GT(accuracy(model, test), 0.9);
    EXPECT_NEAR(model.estimate.accuracy.value, accuracy(model, test), 0.08);
  }
}

TEST(Fit, SameBitsForAnyThreadsAndAnotherSeedAnotherBank) {
  const Waves w = make_waves(60, 3, 1);
  FitOptions o = small();
  const Fitted two = fit(w.source(), w.targets, o);
  o.threads = 1;
  const Fitted one = fit(w.source(), w.targets, o);
  EXPECT_EQ(one.weight, two.weight);
  EXPECT_EQ(one.bank.thresholds, two.bank.thresholds);
  EXPECT_EQ(one.temperature, two.temperature);
  o.seed = 1;
  EXPECT_NE(fit(w.source(), w.targets, o).bank.theta, one.bank.theta);
}

TEST(Fit, GroupsThatAreTheLabelLeaveNothingToSay) {
  // Each series carries a level of its group, and groups are of one class each: without the group
  // nothing of the class can be known.
  Waves w;
  w.targets.outputs = 2;
  Random random(3, RandomSite::trial);
  for (size_t i = 0; i < 120; ++i) {
    const size_t group = i % 12;
    Random level(5, RandomSite::trial, {group});
    const double shift = 3 * level.normal();
    for (size_t t = 0; t < 30; ++t) {
      w.values.push_back(static_cast<float>(shift + 0.2 * random.normal()));
    }
    w.offsets.push_back(static_cast<int64_t>(w.values.size()));
    w.targets.classes.push_back(static_cast<int64_t>(group % 2));
    w.targets.groups.push_back(static_cast<int64_t>(group));
  }
  const Fitted grouped = fit(w.source(), w.targets, small());
  Targets without = w.targets;
  without.groups.clear();
  const Fitted single = fit(w.source(), without, small());
  EXPECT_EQ(grouped.estimate.kind, EstimateKind::leave_one_group_out);
  EXPECT_GT(single.estimate.accuracy.value, 0.75);
  EXPECT_LT(grouped.estimate.accuracy.value, single.estimate.accuracy.value - 0.1);
  EXPECT_GT(grouped.temperature, single.temperature);
}

TEST(Fit, WeightsCountAsCopies) {
  Waves w = make_waves(40, 2, 1, 1.0), twice = w;
  w.targets.weights.assign(40, 1.0);
  for (size_t i = 0; i < 10; ++i) {
    w.targets.weights[i] = 0;  // as if it were not there
    twice.targets.classes[i] = 1 - twice.targets.classes[i];
  }
  twice.targets.weights = w.targets.weights;
  const Fitted a = fit(w.source(), w.targets, small()),
               b = fit(twice.source(), twice.targets, small());
  EXPECT_EQ(a.weight, b.weight);
  EXPECT_EQ(a.estimate.examples, 30u);
}

TEST(Fit, RegressionFindsAFrequency) {
  Waves w;
  w.targets.outputs = 1;
  Random random(4, RandomSite::trial);
  for (size_t i = 0; i < 150; ++i) {
    const double frequency = 0.2 + random.uniform();
    const double phase = 6.28 * random.uniform();
    for (size_t t = 0; t < 60; ++t) {
      w.values.push_back(static_cast<float>(std::sin(phase + frequency * static_cast<double>(t))));
    }
    w.offsets.push_back(static_cast<int64_t>(w.values.size()));
    w.targets.values.push_back((frequency - 0.7) / 0.29);
  }
  const Fitted model = fit(w.source(), w.targets, small());
  EXPECT_LT(model.estimate.loss.value, 0.1);  // of a variance of 1
}

template <class F>
std::string message_of(const F& f) {
  try {
    f();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

TEST(Fit, TemperatureLeavesRoomForDoubt) {
  // All right, so that any lower temperature has a smaller loss: it is as if one more example were
  // of any class.
  std::vector<double> scores;
  std::vector<int64_t> classes;
  for (size_t i = 0; i < 50; ++i) {
    classes.push_back(static_cast<int64_t>(i % 2));
    scores.push_back(i % 2 == 0 ? 1 : -1);
    scores.push_back(i % 2 == 0 ? -1 : 1);
  }
  const double temperature = best_temperature({scores, classes, {}, {}});
  const double sure = 1 / (1 + std::exp(-2 / temperature));
  EXPECT_NEAR(sure, 1 - 0.5 / 51, 2e-3);
}

TEST(Fit, BadInputIsNamed) {
  const Waves w = make_waves(20, 2, 1);
  const auto message = [&](const Waves& x) {
    return message_of([&] { fit(x.source(), x.targets, small()); });
  };
  Waves one = make_waves(1, 2, 1);
  EXPECT_NE(message(one).find("at least two"), std::string::npos);
  Waves same = w;
  std::fill(same.targets.classes.begin(), same.targets.classes.end(), 1);
  EXPECT_NE(message(same).find("one class"), std::string::npos);
  Waves bad = w;
  bad.values[static_cast<size_t>(w.offsets[3]) + 5] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_NE(message(bad).find("example 4"), std::string::npos);
  Waves outside = w;
  outside.targets.classes[7] = 2;
  EXPECT_NE(message(outside).find("example 8"), std::string::npos);
}

TEST(Fit, OddInputIsFitted) {
  // Length 1, constant channels, and one example of some classes.
  Waves w;
  w.targets.outputs = 40;
  for (size_t i = 0; i < 60; ++i) {
    const size_t length = i % 5 == 0 ? 1 : 3;
    for (size_t t = 0; t < length; ++t) {
      w.values.push_back(static_cast<float>(i % 40));
      w.values.push_back(7);
    }
    w.offsets.push_back(static_cast<int64_t>(w.values.size() / 2));
    w.targets.classes.push_back(static_cast<int64_t>(i % 40));
  }
  const Source source = packed_source(w.values, w.offsets, 2);
  const Fitted model = fit(source, w.targets, small());
  for (const float y : predict(model, source, 2)) ASSERT_TRUE(std::isfinite(y));
  Waves constant = make_waves(20, 2, 1);
  std::fill(constant.values.begin(), constant.values.end(), 3.0f);
  const Fitted nothing = fit(constant.source(), constant.targets, small());
  for (const float y : predict(nothing, constant.source(), 2)) ASSERT_TRUE(std::isfinite(y));
}

}  // namespace
}  // namespace rotrnn::fit
