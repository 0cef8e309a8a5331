#include "rotrnn/network/features/feature_pass.h"

#include <gtest/gtest.h>

#include <cmath>

#include "rotrnn/base/random.h"
#include "rotrnn/fit/fit.h"
#include "rotrnn/network/features/feature_tensors.h"
#include "rotrnn/network/network.h"

namespace rotrnn {
namespace {

/// A network fitted to noise, and its data.
struct Example {
  std::vector<float> values;
  std::vector<int64_t> offsets{0};
  fit::Fitted model;
  ModelOptions options;
  DataShape shape;
};

Example make_example() {
  Example e;
  fit::Targets targets;
  targets.outputs = 3;
  Random random(1, RandomSite::trial);
  for (size_t i = 0; i < 24; ++i) {
    const size_t length = 1 + random.below(50);
    for (size_t t = 0; t < 2 * length; ++t) {
      e.values.push_back(static_cast<float>(random.normal()));
    }
    e.offsets.push_back(static_cast<int64_t>(e.values.size() / 2));
    targets.classes.push_back(static_cast<int64_t>(i % 3));
  }
  fit::FitOptions o;
  o.states = 32;
  o.threads = 2;
  e.model = fit::fit(fit::packed_source(e.values, e.offsets, 2), targets, o);
  e.options.body = Body::features;
  e.options.features.states = 32;
  e.options.features.taps = static_cast<int64_t>(e.model.bank.taps);
  e.shape = {InputKind::channels, 2, TargetKind::classes, 3};
  return e;
}

TEST(FeatureNetwork, GivesWhatTheFitPredictsAndItsTwinToo) {
  const Example e = make_example();
  Network network(e.options, e.shape, 0);
  set_features(e.model.bank, e.model.weight, e.model.bias, network.weights());
  Workspace workspace;
  NetworkInput input;
  input.batch = {e.offsets, {}, e.values};
  const auto y = network.forward(input, workspace);
  const std::vector<float> fused(y.begin(), y.end());
  EXPECT_EQ(fused, fit::predict(e.model, fit::packed_source(e.values, e.offsets, 2), 1));
  network.engine.kernels = Kernels::reference;
  const auto twin = network.forward(input, workspace);
  ASSERT_EQ(twin.size(), fused.size());
  for (size_t i = 0; i < fused.size(); ++i) EXPECT_NEAR(twin[i], fused[i], 1e-3) << i;
}

TEST(FeatureNetwork, HasNoGradient) {
  const Example e = make_example();
  Network network(e.options, e.shape, 0);
  Workspace workspace;
  NetworkInput input;
  input.batch = {e.offsets, {}, e.values};
  input.mode = Mode::train;
  input.backward = true;
  EXPECT_THROW(network.forward(input, workspace), std::invalid_argument);
}

TEST(FeatureNetwork, RefusesWhatItCannotBe) {
  Example e = make_example();
  e.shape.per_token = true;
  EXPECT_THROW(Network(e.options, e.shape, 0), std::invalid_argument);
  e.shape.per_token = false;
  e.options.features.states = 30;
  EXPECT_THROW(Network(e.options, e.shape, 0), std::invalid_argument);
}

}  // namespace
}  // namespace rotrnn
