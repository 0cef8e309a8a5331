#include "rotrnn/training/optimiser.h"

#include <gtest/gtest.h>

#include <cmath>

#include "rotrnn/base/random.h"
#include "rotrnn/network/tensors.h"

// AdamW as it is written in the paper (Loshchilov and Hutter 2019, algorithm 2), parameter by
// parameter in double. The same steps as PyTorch makes them are compared in
// tests/network/plain_oracle_test.cpp.

namespace rotrnn {
namespace {

using Doubles = std::vector<double>;

WeightLayout layout_of(const std::string& layer, int64_t width = 6, int64_t state = 8) {
  ModelOptions m;
  m.layer = layer;
  m.s5.blocks = 2;
  m.s5.groups = S5Groups::b_and_c_decay;
  m.width = width;
  m.state = state;
  m.rotrnn.heads = 2;
  m.depth = 1;
  return WeightLayout(network_tensors(m, {InputKind::channels, 2, TargetKind::values, 1}));
}

TensorSpecs specs_of(const WeightLayout& layout) {
  TensorSpecs specs;
  for (const auto& p : layout.parameters) specs.parameters.push_back({p.name, p.shape, p.group});
  return specs;
}

void fill(FlatArray& array, Random& random, double scale) {
  for (float& x : array.all()) x = static_cast<float>(scale * random.normal());
}

class AdamW : public ::testing::TestWithParam<const char*> {};

TEST_P(AdamW, IsThePapersOfEveryGroup) {
  const WeightLayout layout = layout_of(GetParam());
  Weights weights(specs_of(layout));
  Random random(4, RandomSite::trial);
  fill(weights.parameters(), random, 1);
  Optimiser optimiser(layout);
  FlatArray gradients(layout);
  const LearningRates rates{1e-2, 2e-3, 0.3};
  Doubles w(weights.parameters().all().begin(), weights.parameters().all().end());
  Doubles m(layout.size), v(layout.size);
  for (int64_t step = 1; step <= 20; ++step) {
    // From tiny to large, with some that are 0.
    fill(gradients, random, std::pow(10, random.below(5) - 3.0));
    for (size_t i = 0; i < layout.size; i += 7) gradients.data()[i] = 0;
    optimiser.step(step, rates, gradients, weights, 2);
    for (const auto& p : layout.parameters) {
      const bool recurrent =
          p.group == ParameterGroup::recurrent || p.group == ParameterGroup::recurrent_decay;
      const bool decays =
          p.group == ParameterGroup::decay || p.group == ParameterGroup::recurrent_decay;
      const double lr = recurrent ? rates.recurrent : rates.global;
      for (size_t i = p.offset; i < p.offset + p.count; ++i) {
        const auto g = static_cast<double>(gradients.data()[i]);
        m[i] = 0.9 * m[i] + 0.1 * g;
        v[i] = 0.999 * v[i] + 0.001 * g * g;
        const double first = m[i] / (1 - std::pow(0.9, step));
        const double second = v[i] / (1 - std::pow(0.999, step));
        w[i] -=
            lr * (first / (std::sqrt(second) + 1e-8) + (decays ? rates.weight_decay * w[i] : 0));
      }
    }
  }
  // A step moves an entry by up to its rate, so 20 make 0.04 or 0.2, and a decay that is left out
  // 0.06 of its size; 1 - β2 in float32 is 1.3e-5 off, and so is √v by half of it.
  for (const auto& p : layout.parameters) {
    for (size_t i = p.offset; i < p.offset + p.count; ++i) {
      ASSERT_NEAR(weights.parameters().data()[i], w[i], 4e-6) << p.name << " " << i - p.offset;
      ASSERT_NEAR(optimiser.first().data()[i], m[i], 1e-6 * (std::abs(m[i]) + 1)) << p.name;
      ASSERT_NEAR(optimiser.second().data()[i], v[i], 2e-5 * v[i] + 1e-30) << p.name;
    }
  }
}

TEST(AdamWThreads, SameBitsForAnyNumber) {
  const WeightLayout layout = layout_of("rotrnn", 200, 256);
  ASSERT_GT(layout.size, 2u * 65536) << "fewer numbers are not worth a thread";
  std::vector<float> one;
  for (const int threads : {1, 2, 3, 7}) {
    Weights weights(specs_of(layout));
    Random random(5, RandomSite::trial);
    fill(weights.parameters(), random, 1);
    Optimiser optimiser(layout);
    FlatArray gradients(layout);
    for (int64_t step = 1; step <= 3; ++step) {
      fill(gradients, random, 0.1);
      optimiser.step(step, {1e-2, 2e-3, 0.3}, gradients, weights, threads);
    }
    const auto all = weights.parameters().all();
    if (threads == 1) one.assign(all.begin(), all.end());
    EXPECT_TRUE(std::equal(all.begin(), all.end(), one.begin())) << threads;
  }
}

INSTANTIATE_TEST_SUITE_P(Layers, AdamW,
                         ::testing::Values("rotrnn", "lru", "s5", "s4d", "s4", "liquid_s4"),
                         [](const auto& info) { return std::string(info.param); });

TEST(FlatArrays, NormScaleAndSum) {
  const WeightLayout layout = layout_of("rotrnn");
  FlatArray a(layout), b(layout);
  Random random(6, RandomSite::trial);
  fill(a, random, 3), fill(b, random, 1);
  double square = 0;
  for (const float x : a.all()) square += static_cast<double>(x) * static_cast<double>(x);
  const double norm = norm_of(a);
  EXPECT_NEAR(norm, std::sqrt(square), 1e-10);
  // What clipping does.
  ASSERT_GT(norm, 1.0);
  const std::vector<float> before(a.all().begin(), a.all().end());
  scale(a, 1 / norm);
  EXPECT_NEAR(norm_of(a), 1.0, 1e-6);
  add(a, b);
  for (size_t i = 0; i < layout.size; ++i) {
    EXPECT_NEAR(a.data()[i], static_cast<double>(before[i]) / norm + b.data()[i], 1e-6);
  }
  // Sums in double: no square overflows a float.
  std::fill(a.all().begin(), a.all().end(), 1e30f);
  EXPECT_NEAR(norm_of(a) / (1e30 * std::sqrt(static_cast<double>(layout.size))), 1, 1e-6);
  EXPECT_TRUE(all_finite(a.all()));
  for (const float bad : {NAN, INFINITY, -INFINITY}) {
    for (const size_t at : {size_t{0}, layout.size / 2, layout.size - 1}) {
      FlatArray c(layout);
      c.data()[at] = bad;
      EXPECT_FALSE(all_finite(c.all()));
      EXPECT_FALSE(std::isfinite(norm_of(c)));
    }
  }
}

}  // namespace
}  // namespace rotrnn
