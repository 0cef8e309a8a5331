#include "rotrnn/training/observe.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <complex>

#include "rotrnn/layers/lru.h"
#include "rotrnn/layers/s4.h"
#include "rotrnn/layers/s4d.h"
#include "tests/support/tensors.h"

namespace rotrnn {
namespace {

using torch::Tensor;
using Complex = std::complex<double>;

const DataShape kTokens{InputKind::tokens, 5, TargetKind::classes, 3};

SequenceModel model_of(const std::string& layer, int64_t width, int64_t state) {
  ModelOptions m;
  m.layer = layer;
  m.width = width;
  m.state = state;
  m.heads = 2;
  m.depth = 2;
  m.s4.max_length = 32;
  return SequenceModel(m, kTokens, 3);
}

std::vector<Complex> values_of(const nlohmann::ordered_json& layer) {
  std::vector<Complex> out;
  for (size_t i = 0; i < layer.at("re").size(); ++i) {
    out.emplace_back(layer.at("re")[i].get<double>(), layer.at("im")[i].get<double>());
  }
  return out;
}

// The largest distance of a value to the nearest one of the other set, both ways.
double distance(const std::vector<Complex>& a, const std::vector<Complex>& b) {
  double worst = a.empty() == b.empty() ? 0 : INFINITY;
  for (const auto& [from, to] : {std::pair{&a, &b}, std::pair{&b, &a}}) {
    for (const Complex& x : *from) {
      double nearest = INFINITY;
      for (const Complex& y : *to) nearest = std::min(nearest, std::abs(x - y));
      worst = std::max(worst, nearest);
    }
  }
  return worst;
}

constexpr double kDigits = 1e-6;  // six digits of numbers up to 1

TEST(LambdaLine, LruFromItsParameters) {
  const SequenceModel model = model_of("lru", 6, 8);
  const auto line = lambda_line(*model, 70);
  EXPECT_EQ(line.at("step"), 70);
  EXPECT_EQ(line.at("split"), "lambda");
  ASSERT_EQ(line.at("layers").size(), 2u);
  for (size_t block = 0; block < 2; ++block) {
    const auto* layer = dynamic_cast<LruImpl*>(model->blocks[block]->layer.get());
    std::vector<Complex> expected;
    for (int64_t i = 0; i < 4; ++i) {
      const double nu = layer->nu_log[i].item<double>(), theta = layer->theta_log[i].item<double>();
      expected.push_back(std::exp(Complex(-std::exp(nu), std::exp(theta))));
    }
    EXPECT_EQ(line.at("layers")[block].at("of"), 4);
    EXPECT_LE(distance(values_of(line.at("layers")[block]), expected), kDigits);
  }
}

TEST(LambdaLine, RotationsLieInTheDiskAndManyAreThinned) {
  const auto line = lambda_line(*model_of("rotrnn", 4, 600), 0);
  const auto values = values_of(line.at("layers")[0]);
  EXPECT_EQ(line.at("layers")[0].at("of"), 300);
  EXPECT_EQ(values.size(), 128u);
  for (const Complex& value : values) EXPECT_LT(std::abs(value), 1);
}

// A step without input, on every unit vector of the state, has the eigenvalues as its own.
TEST(LambdaLine, S4FromStepsWithoutInput) {
  const SequenceModel model = model_of("s4", 3, 8);
  const auto line = lambda_line(*model, 0);
  const auto* layer = dynamic_cast<S4Impl*>(model->blocks[1]->layer.get());
  torch::NoGradGuard no_grad;
  const S4Steps steps = layer->steps();
  const int64_t size = 2 * 3 * 4;
  const Tensor units = torch::eye(size, torch::kFloat64);
  const Tensor moved =
      S4Impl::step(steps, units, torch::zeros({size, 3}, torch::kFloat64)).z.to(torch::kFloat64);
  const Tensor found = torch::linalg_eigvals(moved.t()).contiguous();
  std::vector<Complex> expected;
  for (int64_t i = 0; i < size; ++i) {
    const auto value = found.data_ptr<c10::complex<double>>()[i];
    expected.emplace_back(value.real(), value.imag());
  }
  EXPECT_EQ(line.at("layers")[1].at("of"), size);
  EXPECT_EQ(line.at("layers")[1].at("re").size(), static_cast<size_t>(size));
  EXPECT_LE(distance(values_of(line.at("layers")[1]), expected), kDigits);
}

TEST(LambdaLine, S4dLooksAtWholeChannels) {
  const SequenceModel model = model_of("s4d", 100, 32);
  const auto line = lambda_line(*model, 0);
  const auto* layer = dynamic_cast<S4DImpl*>(model->blocks[0]->layer.get());
  const int64_t states = layer->recurrence().lambda.size(1);
  EXPECT_EQ(line.at("layers")[0].at("of"), 100 * states);
  EXPECT_LE(line.at("layers")[0].at("re").size(), 128u);
  EXPECT_EQ(line.at("layers")[0].at("re").size() % static_cast<size_t>(states), 0u);
}

TEST(NormsLine, IsThatOfTheTrainerAndNullWithoutStates) {
  const Packed batch(torch::tensor({0, 1, 2, 3, 4, 1}), std::vector<int64_t>{0, 4, 6});
  SequenceModel model = model_of("rotrnn", 6, 8);
  const auto line = norms_line(*model, batch, 9);
  EXPECT_EQ(line.at("split"), "norms");
  const auto norms = model->state_norms(batch);
  double sum = 0;  // of the first block, token by token
  for (int64_t t = 0; t < 6; ++t) {
    const double a = norms[0][t][0].item<double>(), b = norms[0][t][1].item<double>();
    sum += std::sqrt(a * a + b * b);
  }
  EXPECT_NEAR(line.at("whole")[0].get<double>(), sum / 6, 1e-5);  // float32
  EXPECT_EQ(line.at("head").size(), 2u);
  EXPECT_TRUE(norms_line(*model_of("s4", 6, 8), batch, 9).is_null());
}

}  // namespace
}  // namespace rotrnn
